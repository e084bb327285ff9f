"""Heartbeats, and the command of a session that ends."""

import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

import pytest

from signalbox.cli.shared.stage import say
from signalbox.cli.splitting.held_sessions import ChildProcess
from signalbox.clients.splitting.heartbeats import HeartbeatThread
from signalbox.clients.splitting.sessions import SessionClient, SessionEnded, SessionRequest
from signalbox.control.protocol import CommandUnavailable
from signalbox.local.processes import is_alive
from tests.patience import wait_for

ENDED = {"session": "ann-1", "phase": "ending", "reason": "its filter is too slow"}
READY = {"session": "ann-1", "phase": "ready"}


@dataclass
class Stage:
    """Returns the same reply to each heartbeat, and counts them."""

    reply: Callable[[], object]
    beats: int = 0

    def ask(self, command: str, fields: Mapping[str, object], *, timeout: timedelta | None = None) -> object:
        self.beats += 1
        return self.reply()


def heartbeat_thread(stage: Stage, **options: object) -> HeartbeatThread:
    request = SessionRequest("lambda/app", "ann-1", "ann", {})
    return HeartbeatThread(SessionClient(stage, request), say, seconds=0.01, **options)


def test_heartbeats_are_sent_during_the_block_only():
    stage = Stage(lambda: READY)

    with heartbeat_thread(stage).running() as heartbeat:
        wait_for(lambda: stage.beats > 3, "heartbeats", every=0.005)
    given = stage.beats
    heartbeat.check()

    assert not [thread for thread in threading.enumerate() if thread.name == "heartbeat"]
    assert stage.beats == given


def test_a_failed_heartbeat_is_reported_and_repeated(capsys):
    def fail() -> object:
        raise CommandUnavailable("throttled")

    stage = Stage(fail)

    with heartbeat_thread(stage).running() as heartbeat:
        wait_for(lambda: stage.beats > 2, "heartbeats", every=0.005)
    heartbeat.check()

    assert "· heartbeat failed: throttled\n" in capsys.readouterr().err


RUNNER = """
import sys
from signalbox.cli.shared.stage import say
from signalbox.cli.splitting.held_sessions import ChildProcess
ChildProcess([sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(60)"], {}).run()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_command_ends_with_a_session_that_is_killed():
    runner = subprocess.Popen([sys.executable, "-c", RUNNER], stdout=subprocess.PIPE)  # noqa: S603 - ours
    command = int(runner.stdout.readline())

    runner.kill()
    runner.communicate()  # ends when nothing has the pipe open any more

    wait_for(lambda: not is_alive(command), "the end of the command", every=0.005)


def test_a_session_ended_by_the_stage_ends_its_command_with_the_reason():
    stage = Stage(lambda: ENDED)
    command = ChildProcess([sys.executable, "-c", "import time; time.sleep(30)"], {})

    with heartbeat_thread(stage, on_end=command.end).running() as heartbeat:
        status = command.run()

    assert status == 128 + 15
    assert stage.beats == 1
    with pytest.raises(SessionEnded, match="'ann-1' has ended: its filter is too slow"):
        heartbeat.check()
