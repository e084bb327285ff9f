"""Rights that are revoked while clients use them: no later event arrives."""

import json
import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from signalbox.clients.live.cursor import PatternCursor
from signalbox.clients.live.session import RequestRefused, SubscriptionRevoked
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.local.stage_folder import StageFolder
from tests.integration.live.page import WorkingFolder
from tests.integration.live.stage import TrialRealm, new_topic
from tests.integration.live.wamp_clients import KINDS, Refused, command_of, joined
from tests.patience import SOON_SECONDS

pytestmark = pytest.mark.emulator

EVENTS = 20


@dataclass(frozen=True, slots=True)
class Visitor:
    """A user with a right to a prefix of topics, which is revoked later; all by commands."""

    desk: WorkingFolder
    place: TrialRealm
    name: str
    topic: str

    def grant(self, pattern: str) -> None:
        self.desk.run("grant", "add", self.name, self.place.realm, pattern, "--match", "prefix")

    def revoke(self) -> None:
        self.desk.run("grant", "remove", self.name, self.place.realm, f"{self.topic}.", "--match", "prefix")


@pytest.fixture
def visitor(place: TrialRealm, stage_folder: StageFolder, tmp_path: Path) -> Iterator[Visitor]:
    desk, name = WorkingFolder.at(tmp_path, stage_folder), f"visitor-{secrets.token_hex(4)}"
    desk.run("user", "add", name, "--role", "subscriber")
    ticket = json.loads(desk.run("user", "secret", name, "--json"))["secret"]
    visitor = Visitor(desk, replace(place, users={**place.users, "visitor": (name, ticket)}), name, new_topic())
    visitor.grant(f"{visitor.topic}.")
    # Who may see nothing else in a realm could not come back to ask.
    visitor.grant("trial.open")
    yield visitor
    desk.run("user", "remove", name, "--yes")


@pytest.mark.parametrize("kind", KINDS)
def test_no_later_event_reaches_a_client_whose_right_was_revoked(kind, visitor):
    topic = f"{visitor.topic}.a"
    with ExitStack() as stack, visitor.place.publisher() as publisher:
        client = joined(stack, command_of(kind), visitor.place.login("visitor"))
        subscription = client.ask("subscribe", name="it", topic=topic)
        before = [f"before {number}" for number in range(EVENTS)]
        for value in before:
            publisher.publish(topic, Payload((value,)))
        client.wait_for_values("it", before)

        visitor.revoke()
        for number in range(EVENTS):
            publisher.publish(topic, Payload((f"after {number}",)))
        with pytest.raises(Refused) as refused:
            client.ask("subscribe", name="again", topic=f"{visitor.topic}.b")

        assert refused.value.error == "wamp.error.not_authorized"
        assert client.values("it") == before
        found = [one["reason"] for one in client.output if "revoked" in one]
        assert len(found) == (1 if kind == "autobahn-js" else 0)
        assert client.joins() == 1
        # The check of the example client for Python, which gets no notice.
        with pytest.raises(Refused) as ended:
            client.ask("call", procedure="wamp.subscription.get_events", args=[subscription], kwargs={"limit": 1})
        assert ended.value.error == "wamp.error.no_such_subscription"


def test_our_client_reports_the_revocation(visitor):
    with visitor.place.client("visitor") as client:
        client.follow(PatternCursor(TopicPattern.parse(f"{visitor.topic}.", MatchPolicy.PREFIX)))
        assert list(client.backfill()) == []

        visitor.revoke()

        with pytest.raises(SubscriptionRevoked):
            client.receive(SOON_SECONDS)
        client.follow(PatternCursor(TopicPattern.parse(f"{visitor.topic}.a")))
        with pytest.raises(RequestRefused, match="not_authorized"):
            client.receive(SOON_SECONDS)
