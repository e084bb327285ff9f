"""Attacks of strangers, of members of a realm and of publishers by command: each was possible once."""

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection

from signalbox.cli.exchange.stage import client_of
from signalbox.clients.deployment import Deployment
from signalbox.clients.live.cursor import PatternCursor
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.local.stage_folder import StageFolder
from tests.integration.live.page import WorkingFolder
from tests.integration.live.stage import ROLES, TrialRealm, ask, connected, new_topic, received
from tests.patience import SOON_SECONDS

pytestmark = pytest.mark.emulator


def join(socket: ClientConnection, place: TrialRealm, name: str, secret: str) -> list[Any]:
    challenge = ask(socket, 1, place.realm, {"authid": name, "authmethods": ["ticket"], "roles": ROLES})
    assert challenge == [4, "ticket", {}]
    return ask(socket, 5, secret, {})


@pytest.fixture
def desk(stage_folder: StageFolder, tmp_path: Path) -> WorkingFolder:
    return WorkingFolder.at(tmp_path, stage_folder)


@pytest.fixture
def member(desk: WorkingFolder, place: TrialRealm) -> Iterator[tuple[str, str]]:
    """A live-only user who may read one topic and call what can be granted; yield name and secret."""
    name = f"member-{secrets.token_hex(4)}"
    yield name, new_member(desk, place, name)
    desk.run("user", "remove", name, "--yes")


def new_member(desk: WorkingFolder, place: TrialRealm, name: str) -> str:
    desk.run("user", "add", name, "--live")
    for uri in ("trial.open", "signalbox.overview", "signalbox.report", "signalbox.activity"):
        desk.run("grant", "add", name, place.realm, uri)
    return new_secret(desk, name)


def new_secret(desk: WorkingFolder, name: str) -> str:
    created: dict[str, str] = json.loads(desk.run("user", "secret", name, "--json"))
    return created["secret"]


def test_a_member_of_a_realm_does_not_see_the_stage(place, member):
    with connected(place) as socket:
        assert join(socket, place, *member)[0] == 2

        for number, procedure in enumerate(("signalbox.overview", "signalbox.report", "signalbox.activity")):
            answer = ask(socket, 48, number + 1, {}, procedure)
            assert answer[:2] + answer[4:5] == [8, 48, "wamp.error.not_authorized"], procedure


@pytest.mark.parametrize("text", ["yes", '{"publication": 7, "disclosed": [1, "live-admin", "admin"], "audience": {}}'])
def test_a_header_of_a_command_is_no_metadata_of_live(place: TrialRealm, deployment: Deployment, text: str) -> None:
    topic = new_topic()
    with place.client("subscriber") as subscriber, place.publisher() as publisher:
        subscriber.follow(PatternCursor(TopicPattern.parse(topic)))
        assert list(subscriber.backfill()) == []

        command = {"exchange": place.realm, "routing_key": topic, "body": '"forged"', "headers": {"live": text}}
        client_of(deployment).ask("publish", command)
        publisher.publish(topic, Payload(("honest",)))
        events = [subscriber.receive(SOON_SECONDS) for _ in range(2)]

    forged, honest = (one for one in events if one is not None)
    assert (forged.payload.arguments, honest.payload.arguments) == (("forged",), ("honest",))
    assert forged.publisher_authid is None
    assert forged.publication != 7


def test_a_login_without_the_secret_does_not_show_who_is_a_user(place, member):
    def answers(name: str) -> list[object]:
        with connected(place) as socket:
            challenge = ask(socket, 1, place.realm, {"authid": name, "authmethods": ["wampcra"], "roles": ROLES})
            refusal = ask(socket, 5, "wrong", {})
        text = json.loads(challenge[2]["challenge"])
        assert text.pop("authid") == name
        return [challenge[:2], sorted(challenge[2]), len(challenge[2]["salt"]), sorted(text), refusal]

    names = [member[0], *(name for name, _ in place.users.values())]
    unknown = answers("stranger")

    assert "authrole" not in unknown[3]
    assert [answers(name) for name in names] == [unknown] * len(names)


def test_a_removed_user_and_the_next_of_that_name_have_no_rights(place, desk):
    name = f"member-{secrets.token_hex(4)}"
    secret = new_member(desk, place, name)
    with connected(place) as socket:
        assert join(socket, place, name, secret)[0] == 2

        removed = json.loads(desk.run("user", "remove", name, "--yes", "--json"))
        goodbye = received(socket)

    assert removed["ended"] == [{"exchange": place.realm, "grants": 4, "denies": 0, "groups": []}]
    assert (goodbye[0], goodbye[2]) == (6, "wamp.close.killed")
    desk.run("user", "add", name, "--live")
    later = new_secret(desk, name)
    with connected(place) as socket:
        assert join(socket, place, name, secret)[2] == "wamp.error.authentication_failed"
    with connected(place) as socket:
        assert join(socket, place, name, later)[2] == "wamp.error.not_authorized"
    desk.run("user", "remove", name, "--yes")
