"""Projects of Arvados as groups: members see the records and container logs of a project while they are members."""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import PatternCursor
from signalbox.clients.live.session import Login, RequestRefused, SubscriptionRevoked
from signalbox.clients.web_socket import connector
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.local.stage_folder import StageFolder
from tests.fakes.issuer import AUDIENCE, running_issuer
from tests.integration.live.page import WorkingFolder
from tests.integration.live.stage import TrialRealm
from tests.patience import SOON_SECONDS

pytestmark = [pytest.mark.emulator, pytest.mark.release]

PROJECT, OTHER = "zzzzz-j7d0g-000000000000001", "zzzzz-j7d0g-000000000000002"
RECORD, LOG, OPEN = "record.collection.{}.u1.update", "container.{}.c1.log.stdout", "open.news"


@dataclass(frozen=True, slots=True)
class Lab:
    """A realm of its own, whose grants name projects only by `{group}`, and a publisher there."""

    desk: WorkingFolder
    place: TrialRealm
    realm: str
    tickets: Mapping[str, str]

    def run(self, *words: str) -> Any:
        return json.loads(self.desk.run(*words, "--json"))

    def client(self, login: Login) -> LiveClient:
        return LiveClient(connector(self.place.url), login)

    def login(self, name: str) -> Login:
        return Login(self.realm, name, self.tickets[name])

    def publish(self, publisher: LiveClient, text: str) -> None:
        """Publish about both projects, and then to the topic of all users: it arrives last."""
        for topic in (*(kind.format(owner) for owner in (PROJECT, OTHER) for kind in (RECORD, LOG)), OPEN):
            publisher.publish(topic, Payload((text,)))


@pytest.fixture(scope="module")
def lab(
    place: TrialRealm, stage_folder: StageFolder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Lab, Any]]:
    desk = WorkingFolder.at(tmp_path_factory.mktemp("lab"), stage_folder)
    mark = secrets.token_hex(4)
    realm, names = f"xlab_{mark}.fifo", [f"member-{mark}", f"cluster-{mark}"]
    with running_issuer() as issuer:
        desk.run("exchange", "declare", realm, "--live", "--issuer", issuer.url, "--audience", AUDIENCE)
        desk.run("user", "add", names[0], "--live", "--role", "subscriber")
        desk.run("user", "add", names[1], "--live", "--role", "feeder")
        created = json.loads(desk.run("user", "secret", *names, "--json"))
        for pattern, match in (("record..{group}..", "wildcard"), ("container.{group}.", "prefix"), (OPEN, "exact")):
            desk.run("grant", "add", "@everyone", realm, pattern, "--match", match)
        yield Lab(desk, place, realm, {one["user"]: one["secret"] for one in created}), issuer
        desk.run("exchange", "delete", realm, "--force", "--yes")


def follow_project(client: LiveClient) -> None:
    client.follow(PatternCursor(TopicPattern.parse(f"record..{PROJECT}..", MatchPolicy.WILDCARD)))
    client.follow(PatternCursor(TopicPattern.parse(f"container.{PROJECT}.", MatchPolicy.PREFIX)))
    client.follow(PatternCursor(TopicPattern.parse(OPEN)))
    assert list(client.backfill()) == []


def received(client: LiveClient) -> Sequence[str]:
    """Return the topics of the events up to the topic of all users; revocations on the way are ignored."""
    topics: list[str] = []
    while OPEN not in topics:
        try:
            event = client.receive(SOON_SECONDS)
        except SubscriptionRevoked:
            continue
        assert event is not None, topics
        topics.append(event.topic)
    return sorted(topics)


SEEN = sorted([RECORD.format(PROJECT), LOG.format(PROJECT), OPEN])


def test_a_member_sees_a_project_and_nothing_else_until_taken_out_of_the_group(lab):
    lab, _ = lab
    member, publisher_name = lab.tickets
    lab.run("group", "add", lab.realm, PROJECT, member)
    with lab.client(lab.login(member)) as client, lab.client(lab.login(publisher_name)) as publisher:
        follow_project(client)
        lab.publish(publisher, "before")
        assert received(client) == SEEN

        trial = lab.run("group", "remove", lab.realm, PROJECT, member, "--dry-run")
        explained = [
            lab.run("grant", "explain", member, LOG.format(owner), "--realm", lab.realm)[0]["permitted"]
            for owner in (PROJECT, OTHER)
        ]
        lab.run("group", "remove", lab.realm, PROJECT, member)
        lab.publish(publisher, "after")

        assert [(one["user"], one["effect"]) for one in trial["subscriptions"]] == [(member, "ends")] * 2
        assert explained == [True, False]
        assert received(client) == [OPEN]
        client.follow(PatternCursor(TopicPattern.parse(LOG.format(PROJECT))))
        with pytest.raises(RequestRefused, match="not_authorized"):
            client.receive(SOON_SECONDS)


def test_a_renewed_token_without_the_group_ends_what_the_group_permitted(lab):
    lab, issuer = lab
    _, publisher_name = lab.tickets
    first, renewed = issuer.token(groups=[PROJECT]), issuer.token(groups=["another"])
    with (
        lab.client(Login(lab.realm, token=lambda: first)) as client,
        lab.client(lab.login(publisher_name)) as publisher,
    ):
        follow_project(client)
        lab.publish(publisher, "before")
        assert received(client) == SEEN

        with pytest.raises(SubscriptionRevoked):
            client.call("signalbox.session.renew", Payload((renewed,)))
        lab.publish(publisher, "after")

        assert received(client) == [OPEN]
