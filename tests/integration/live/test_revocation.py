"""Rights that are revoked while clients use them: no later event arrives."""

import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.cli.exchange.stage import client_of
from signalbox.cli.shared.deployment import Deployment
from signalbox.clients.live.cursor import Cursor
from signalbox.clients.live.session import RequestRefused, SubscriptionRevoked
from signalbox.exchange.model.records import User
from signalbox.live.admin.commands import secret_fields
from signalbox.live.wamp.authentication import Credentials
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role
from tests.integration.live.stage import TrialRealm, new_topic
from tests.integration.live.wamp_clients import KINDS, Refused, command_of, joined

pytestmark = pytest.mark.emulator

EVENTS = 20


@dataclass(frozen=True, slots=True)
class Visitor:
    """A user with a right to a prefix of topics, which is revoked later."""

    deployment: Deployment
    place: TrialRealm
    name: UserName
    topic: str

    @property
    def grant(self) -> dict[str, object]:
        found = {"user": self.name, "exchange": self.place.realm, "right": "read"}
        return {**found, "match": "prefix", "uri": f"{self.topic}."}

    def tell(self, command: str, **fields: object) -> None:
        with client_of(self.deployment) as client:
            client.ask(command, fields)


@pytest.fixture
def visitor(deployment: Deployment, place: TrialRealm) -> Iterator[Visitor]:
    name, ticket = UserName(f"visitor-{secrets.token_hex(4)}"), secrets.token_hex()
    records = DynamoUsers(deployment.session().resource("dynamodb").Table(deployment.outputs["ExchangeTable"]))
    records.put(User(name, Role.SUBSCRIBER, Ownership.STRICT, datetime.now(UTC), f"none:{name}"))
    at = replace(place, users={**place.users, "visitor": (name, ticket)})
    visitor = Visitor(deployment, at, name, new_topic())
    credentials = Credentials.of(ticket, salt=secrets.token_hex(16), with_key=False)
    visitor.tell("secret", user=name, **secret_fields(credentials))
    visitor.tell("grant", **visitor.grant)
    # Who may see nothing else in a realm could not come back to ask.
    visitor.tell("grant", **{**visitor.grant, "uri": "trial.open"})
    yield visitor
    records.remove(name)


@pytest.mark.parametrize("kind", KINDS)
def test_no_later_event_reaches_a_client_whose_right_was_revoked(kind, visitor):
    topic = f"{visitor.topic}.a"
    with ExitStack() as stack, visitor.place.publisher() as publisher:
        client = joined(stack, command_of(kind), visitor.place.login("visitor"))
        client.ask("subscribe", name="it", topic=topic)
        before = [f"before {number}" for number in range(EVENTS)]
        for value in before:
            publisher.publish(topic, Payload((value,)))
        client.wait_for_values("it", before)

        visitor.tell("ungrant", **visitor.grant)
        for number in range(EVENTS):
            publisher.publish(topic, Payload((f"after {number}",)))
        with pytest.raises(Refused) as refused:
            client.ask("subscribe", name="again", topic=f"{visitor.topic}.b")

        assert refused.value.error == "wamp.error.not_authorized"
        assert client.values("it") == before
        found = [one["reason"] for one in client.output if "revoked" in one]
        assert len(found) == (1 if kind == "autobahn-js" else 0)
        assert client.joins() == 1


def test_our_client_reports_the_revocation(visitor):
    with visitor.place.client("visitor") as client:
        client.follow(Cursor(TopicPattern.parse(f"{visitor.topic}.", MatchPolicy.PREFIX)))
        assert list(client.backfill()) == []

        visitor.tell("ungrant", **visitor.grant)

        with pytest.raises(SubscriptionRevoked):
            client.receive(60)
        client.follow(Cursor(TopicPattern.parse(f"{visitor.topic}.a")))
        with pytest.raises(RequestRefused, match="not_authorized"):
            client.receive(60)
