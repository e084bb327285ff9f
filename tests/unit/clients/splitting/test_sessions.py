"""The client of a splitting session."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from signalbox.clients.control import NoControlReply
from signalbox.clients.splitting.sessions import (
    SessionClient,
    SessionEnded,
    SessionNotReady,
    SessionRequest,
    exclusive_config,
    mirror_config,
)
from signalbox.control.protocol import CommandRejected, CommandUnavailable
from signalbox.splitting.control.protocol import SessionStatus

REQUEST = SessionRequest("lambda/app", "ann-1", "ann@desk", {"feature": {}})
NAMED = {"target": "lambda/app", "session": "ann-1"}


@dataclass
class Stage:
    """Returns the given replies, one after the other."""

    answers: list[object]
    asked: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    phases: list[str] = field(default_factory=list)
    waited: list[str] = field(default_factory=list)

    def ask(self, command: str, fields: Mapping[str, object], *, timeout: timedelta | None = None) -> object:
        self.asked.append((command, fields))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, dict) else {"session": "ann-1", "phase": answer}

    def note(self, state: SessionStatus) -> None:
        self.phases.append(state.phase)

    def client(self) -> SessionClient:
        return SessionClient(
            self,
            REQUEST,
            on_progress=self.note,
            on_wait=self.waited.append,
            sleep=self.slept.append,
            clock=lambda: sum(self.slept),
        )


def test_start_sends_heartbeats_until_the_session_is_ready():
    stage = Stage(["starting", "starting", "matching", "ready"])

    state = stage.client().start(timeout=timedelta(seconds=9))

    assert state.phase == "ready"
    assert stage.phases == ["starting", "matching", "ready"]
    start = ("start", {**NAMED, "owner": "ann@desk", "config": {"feature": {}}})
    assert stage.asked == [start, *[("heartbeat", NAMED)] * 3]


def test_a_command_without_a_reply_is_repeated():
    """Its function was killed: the command may or may not have been executed, and may be repeated."""
    stage = Stage([NoControlReply("no reply"), "starting", NoControlReply("no reply"), "ready"])

    assert stage.client().start(timeout=timedelta(seconds=9)).phase == "ready"
    assert [command for command, _ in stage.asked] == ["start", "start", "heartbeat", "heartbeat"]
    assert stage.waited == ["no reply", "no reply"]


def test_callbacks_for_progress_are_optional():
    stage = Stage([CommandUnavailable("ending"), "ready"])
    client = SessionClient(stage, REQUEST, sleep=stage.slept.append)

    assert client.start(timeout=timedelta(seconds=9)).phase == "ready"


def test_a_session_that_ends_during_its_start_raises_with_the_reason():
    stage = Stage(["starting", {"session": "ann-1", "phase": "ending", "reason": "AccessDenied for memes"}])

    with pytest.raises(SessionEnded, match="'ann-1' has ended: AccessDenied for memes"):
        stage.client().start(timeout=timedelta(seconds=9))


def test_a_session_that_is_not_ready_in_time_raises():
    stage = Stage(["starting"] * 9)

    with pytest.raises(SessionNotReady, match="still starting"):
        stage.client().start(timeout=timedelta(seconds=3))
    assert len(stage.slept) == 3


def test_start_waits_for_a_split_that_is_being_undone_and_reports_it_once():
    stage = Stage([CommandUnavailable("being undone"), CommandUnavailable("being undone"), "ready"])

    stage.client().start(timeout=timedelta(seconds=9))

    assert stage.waited == ["being undone"]
    assert [command for command, _ in stage.asked] == ["start"] * 3


def test_a_command_that_stays_unavailable_raises_after_the_timeout():
    stage = Stage([CommandUnavailable("being undone")] * 9)

    with pytest.raises(CommandUnavailable, match="being undone"):
        stage.client().start(timeout=timedelta(seconds=2))


def test_a_rejection_is_final():
    with pytest.raises(CommandRejected, match="no registry"):
        Stage([CommandRejected("no registry")]).client().start(timeout=timedelta(seconds=9))


def test_a_session_is_ended_by_its_name():
    stage = Stage(["ending"])

    assert stage.client().stop().phase == "ending"
    assert stage.asked == [("stop", NAMED)]


def test_both_forms_of_a_config_become_mirroring():
    entry = {"queue_type": "SQS", "queue_mode": "steal"}
    mirroring = {"queue_type": "SQS", "queue_mode": "mirror"}

    def file(queues: object) -> object:
        return {"target": "x", "feature": {"split_queues": queues}}

    assert mirror_config(file({"memes": entry})) == file({"memes": mirroring})
    assert mirror_config(file([{"queue_id": "memes", **entry}])) == file([{"queue_id": "memes", **mirroring}])


def test_a_config_that_takes_whole_queues_becomes_mirroring_of_every_message():
    exclusive = {"queue_type": "SQS", "queue_mode": "exclusive"}
    everything = {"queue_type": "SQS", "queue_mode": "mirror", "jq_filter": "true"}

    assert mirror_config({"feature": {"split_queues": {"memes": exclusive}}}) == {
        "feature": {"split_queues": {"memes": everything}}
    }
    assert mirror_config({"feature": {"copy_target": {"scale_down": True}}}) == {
        "feature": {"split_queues": {"*": everything}}
    }
    assert mirror_config(exclusive_config()) == {"feature": {"split_queues": {"*": everything}}}


@pytest.mark.parametrize(
    "document", [[], {"feature": 1}, {"feature": {"split_queues": "all"}}, {"feature": {"split_queues": {"memes": 1}}}]
)
def test_an_invalid_config_stays_unchanged_for_its_parser_to_refuse(document):
    assert mirror_config(document) == document
