"""Permissions of the rendezvous functions' roles on the tables and queues of peers, in other regions."""

from collections.abc import Sequence

from stacks.grants.permissions import USE_KEY, Conditions, allow
from stacks.rendezvous.construct import Rendezvous
from stacks.settings.config import Config
from stacks.settings.peers import RendezvousPeer
from stacks.shared.function import Function

# The keys of the items that another region's functions use (signalbox/aws/rendezvous); a test compares them.
ANNOUNCED, OFFERS, PRESENCE = "announced#*", "offer#*", "presence"


def grant_peers(rendezvous: Rendezvous, config: Config) -> None:
    """Grant the functions what they do at each peer: announce, claim and answer offers, and nothing else."""
    offer, poll, answer, client = (rendezvous.functions[name] for name in ("offer", "poll", "answer", "client"))
    for peer in config.peers:
        for function in (offer, client):
            _allow_items(function, peer, actions=["dynamodb:PutItem"], keys=ANNOUNCED)
            _allow_items(function, peer, actions=["dynamodb:Query"], keys=PRESENCE)
        _allow_items(poll, peer, actions=["dynamodb:GetItem", "dynamodb:UpdateItem"], keys=OFFERS)
        _allow_items(answer, peer, actions=["dynamodb:UpdateItem"], keys=OFFERS)
        allow(answer, ["sqs:SendMessage"], [peer.clients_arn])
        allow(answer, ["sqs:DeleteMessage"], [peer.broker_arn])
        for function in (offer, poll, answer, client):
            allow(function, USE_KEY, [peer.key_arn], _through(peer))


def _allow_items(function: Function, peer: RendezvousPeer, *, actions: Sequence[str], keys: str) -> None:
    only: Conditions = {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": keys}}
    allow(function, actions, [peer.table_arn], only)


def _through(peer: RendezvousPeer) -> Conditions:
    return {"StringEquals": {"kms:ViaService": f"dynamodb.{peer.region}.amazonaws.com"}}
