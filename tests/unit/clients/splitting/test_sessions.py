"""A session as the one who wants it sees it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from signalbox.clients.control import NoControlReply
from signalbox.clients.splitting.sessions import SessionClient, SessionEnded, SessionNotReady, SessionRequest, mirrored
from signalbox.control.protocol import CommandRejected, CommandUnavailable
from signalbox.splitting.control.protocol import SessionState

REQUEST = SessionRequest("lambda/app", "ann-1", "ann@desk", {"feature": {}})
NAMED = {"target": "lambda/app", "session": "ann-1"}


@dataclass
class Stage:
    """Replies what it was given, one after the other."""

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

    def note(self, state: SessionState) -> None:
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


def test_a_session_is_waited_for_with_signs_of_life_until_it_is_ready():
    stage = Stage(["starting", "starting", "matching", "ready"])

    state = stage.client().start(timeout=timedelta(seconds=9))

    assert state.phase == "ready"
    assert stage.phases == ["starting", "matching", "ready"]
    start = ("start", {**NAMED, "owner": "ann@desk", "config": {"feature": {}}})
    assert stage.asked == [start, *[("heartbeat", NAMED)] * 3]


def test_a_stage_that_does_not_reply_is_asked_again():
    """Its function was killed: what it was asked for may be done or not, and may be asked for twice."""
    stage = Stage([NoControlReply("no reply"), "starting", NoControlReply("no reply"), "ready"])

    assert stage.client().start(timeout=timedelta(seconds=9)).phase == "ready"
    assert [command for command, _ in stage.asked] == ["start", "start", "heartbeat", "heartbeat"]
    assert stage.waited == ["no reply", "no reply"]


def test_progress_need_not_be_watched():
    stage = Stage([CommandUnavailable("ending"), "ready"])
    client = SessionClient(stage, REQUEST, sleep=stage.slept.append)

    assert client.start(timeout=timedelta(seconds=9)).phase == "ready"


@pytest.mark.parametrize("phase", ["ending", "gone"])
def test_a_session_that_ends_on_the_way_says_why(phase):
    stage = Stage(["starting", {"session": "ann-1", "phase": phase, "reason": "AccessDenied for memes"}])

    with pytest.raises(SessionEnded, match="'ann-1' has ended: AccessDenied for memes"):
        stage.client().start(timeout=timedelta(seconds=9))


def test_a_session_that_is_not_ready_in_time_is_given_up():
    stage = Stage(["starting"] * 9)

    with pytest.raises(SessionNotReady, match="still starting"):
        stage.client().start(timeout=timedelta(seconds=3))
    assert len(stage.slept) == 3


def test_a_split_that_is_being_undone_is_waited_for_and_told_once():
    stage = Stage([CommandUnavailable("being undone"), CommandUnavailable("being undone"), "ready"])

    stage.client().start(timeout=timedelta(seconds=9))

    assert stage.waited == ["being undone"]
    assert [command for command, _ in stage.asked] == ["start"] * 3


def test_what_stays_unavailable_is_raised_when_the_time_is_up():
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


def test_a_file_in_either_form_becomes_one_that_mirrors():
    entry = {"queue_type": "SQS", "queue_mode": "steal"}
    mirroring = {"queue_type": "SQS", "queue_mode": "mirror"}

    def file(queues: object) -> object:
        return {"target": "x", "feature": {"split_queues": queues}}

    assert mirrored(file({"memes": entry})) == file({"memes": mirroring})
    assert mirrored(file([{"queue_id": "memes", **entry}])) == file([{"queue_id": "memes", **mirroring}])


@pytest.mark.parametrize(
    "document", [[], {"feature": 1}, {"feature": {"split_queues": "all"}}, {"feature": {"split_queues": {"memes": 1}}}]
)
def test_what_is_no_such_file_stays_as_it_is_for_its_reader_to_refuse(document):
    assert mirrored(document) == document
