"""The users of the local stage's realm: one of each role, so that live can be tried at once."""

import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import boto3

from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.clients.exchange.client import ExchangeClient, stage_client
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import PatternCursor
from signalbox.clients.live.session import Login
from signalbox.clients.web_socket import connector
from signalbox.errors import SignalboxError
from signalbox.exchange.model.records import User
from signalbox.live.admin.commands import secret_fields
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role

REALM = "xtrial.fifo"
PREFIX = "trial"
START_TOPIC = "signalbox.awake"
START_SECONDS = 120.0
TICKET_BYTES, SALT_BYTES = 24, 16
# The role of each user, and its rights in addition to those of the role.
USERS = {
    UserName("live-admin"): (Role.ADMIN, ()),
    UserName("live-source"): (Role.SOURCE, ("read", "write")),
    UserName("live-subscriber"): (Role.SUBSCRIBER, ("read",)),
}


def live_users(
    session: boto3.Session, outputs: Mapping[str, str], *, known: Mapping[str, Any]
) -> Sequence[Mapping[str, str]]:
    """Create the realm and its users; return each as `name`, `ticket` and `role`.

    `known` is the previous `local.json`: users in it keep their tickets, unless it is that of another stage.
    """
    is_same = known.get("outputs", {}).get("LiveTable") == outputs["LiveTable"]
    tickets = {user["name"]: user["ticket"] for user in known.get("live_users", ()) if is_same}
    records = DynamoUsers(DynamoTable(session.client("dynamodb"), outputs["ExchangeTable"]))
    known_users, now = records.find_all(USERS), datetime.now(UTC)
    missing = [name for name in USERS if name not in known_users]
    records.put_live_only([User(name, USERS[name][0], Ownership.STRICT, now, None) for name in missing])
    client = stage_client(session.client("sqs"), outputs)
    client.declare_exchange(REALM, live={"live": True})
    return [_user(client, name, tickets.get(name)) | {"role": role.value} for name, (role, _) in USERS.items()]


def start_functions(websocket_url: str, users: Sequence[Mapping[str, str]]) -> bool:
    """Publish and receive an event, so that each function has an instance; return whether it arrived in time.

    Starting five functions at the same time takes longer than the 10 s that a client has to join.
    """
    (admin,) = (user for user in users if user["role"] == Role.ADMIN)
    login = Login(REALM, admin["name"], admin["ticket"])
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        # A client that cannot join was too slow, because the functions were still starting.
        with suppress(SignalboxError), LiveClient(connector(websocket_url), login) as client:
            client.follow(PatternCursor(TopicPattern.parse(START_TOPIC)))
            client.publish(START_TOPIC, options={"exclude_me": False})
            if client.receive(START_SECONDS / 4) is not None:
                return True
    return False


def _user(client: ExchangeClient, name: UserName, ticket: str | None) -> dict[str, str]:
    """Give a user its rights, and a ticket unless it has one; return its name and ticket."""
    _, rights = USERS[name]
    for right in rights:
        grant = {"user": name, "exchange": REALM, "right": right, "match": "prefix", "uri": PREFIX}
        client.ask("grant", grant)
    if ticket is None:
        ticket = secrets.token_urlsafe(TICKET_BYTES)
        credentials = StoredSecret.of(ticket, salt=secrets.token_hex(SALT_BYTES), with_key=True)
        client.ask("secret", {"user": name, **secret_fields(credentials)})
    return {"name": name, "ticket": ticket}
