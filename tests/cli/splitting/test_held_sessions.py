"""Signs of life, and what happens to a command whose session ends."""

import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

import pytest

from signalbox.cli.splitting.held_sessions import Command, Pulse
from signalbox.clients.splitting.sessions import SessionClient, SessionEnded, SessionRequest
from signalbox.control.protocol import CommandUnavailable

ENDED = {"session": "ann-1", "phase": "ending", "reason": "its filter is too slow"}
READY = {"session": "ann-1", "phase": "ready"}


@dataclass
class Stage:
    """Replies the same to each sign of life, and counts them."""

    reply: Callable[[], object]
    beats: int = 0

    def ask(self, command: str, fields: Mapping[str, object], *, timeout: timedelta | None = None) -> object:
        self.beats += 1
        return self.reply()


def pulse_of(stage: Stage, **options: object) -> Pulse:
    request = SessionRequest("lambda/app", "ann-1", "ann", {})
    return Pulse(SessionClient(stage, request), seconds=0.01, **options)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_signs_of_life_are_given_meanwhile_and_not_afterwards():
    stage = Stage(lambda: READY)

    with pulse_of(stage).beating() as pulse:
        wait_for(lambda: stage.beats > 3)
    given = stage.beats
    pulse.check()

    assert not [thread for thread in threading.enumerate() if thread.name == "heartbeat"]
    assert stage.beats == given


def test_a_sign_that_does_not_get_through_is_told_and_given_again(capsys):
    def fail() -> object:
        raise CommandUnavailable("throttled")

    stage = Stage(fail)

    with pulse_of(stage).beating() as pulse:
        wait_for(lambda: stage.beats > 2)
    pulse.check()

    assert "· no sign of life could be given: throttled\n" in capsys.readouterr().err


def test_a_session_that_the_stage_ended_says_why_and_ends_its_command():
    stage = Stage(lambda: ENDED)
    command = Command([sys.executable, "-c", "import time; time.sleep(30)"], {})

    with pulse_of(stage, on_end=command.end).beating() as pulse:
        status = command.run()

    assert status == 128 + 15
    assert stage.beats == 1
    with pytest.raises(SessionEnded, match="'ann-1' has ended: its filter is too slow"):
        pulse.check()
