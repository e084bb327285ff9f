"""The table of fields that come from outside, compared with the types that edges parse, and with the tests."""

import re
from dataclasses import fields
from typing import get_args

import pytest

from lambdas.shared.http import Request
from signalbox.control.envelope import Envelope
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.live.arvados.requests import BadRequest, SubscribeRequest, UnsubscribeRequest
from signalbox.live.bridge.rows import DatabaseRow
from signalbox.live.model.state import Signal
from signalbox.live.router.publication_metadata import PublicationMetadata
from signalbox.live.session.machine import ARVADOS_RULES, RULES
from signalbox.live.wamp.messages import (
    Abort,
    Authenticate,
    Call,
    Cancel,
    Goodbye,
    Hello,
    Publish,
    Register,
    Subscribe,
    Unregister,
    Unsubscribe,
)
from signalbox.messages import Message
from signalbox.rendezvous.model.states import OfferDelivery
from signalbox.rendezvous.wire.offer import Offer
from signalbox.rendezvous.wire.proxy import ProxyAnswer, ProxyPoll
from tests.docs.markdown import ROOT

EDGES = (
    *(Envelope, Message, MessageProperties, PublicationMetadata, Offer, OfferDelivery, ProxyPoll, ProxyAnswer),
    *(Request, Hello, Authenticate, Publish, Subscribe, Unsubscribe, Call, DatabaseRow),
    *(SubscribeRequest, UnsubscribeRequest),
)
# Of these messages of clients, a rule reads the id of the request at most.
UNREAD = {Abort, Goodbye, Cancel, Register, Unregister, BadRequest}
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in (ROOT / "docs/security.md").read_text().splitlines()
    if re.match(r"\| `[A-Z]\w+\.\w+`", line)
]


def test_the_table_has_each_field_that_an_edge_reads_once() -> None:
    named = [row[0].strip("`") for row in ROWS]

    assert sorted(named) == sorted(f"{edge.__name__}.{one.name}" for edge in EDGES for one in fields(edge))


def test_every_message_of_a_client_that_a_rule_reads_is_an_edge() -> None:
    rules = [*RULES.values(), *ARVADOS_RULES.values()]

    assert {kind for each in rules for kind in each} - {*get_args(Signal)} - UNREAD <= {*EDGES}


@pytest.mark.parametrize("row", ROWS, ids=[row[0].strip("`") for row in ROWS])
def test_each_field_names_who_sets_it_what_it_is_trusted_for_and_its_test(row: list[str]) -> None:
    _, set_by, trusted_for, _check, test = row
    path, _, name = test.strip("`").partition("::")

    assert set_by
    assert trusted_for
    assert (ROOT / path).exists()
    assert not name or re.search(rf"def {name}\(", (ROOT / path).read_text())
