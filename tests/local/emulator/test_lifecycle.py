"""The emulator is started, found again, and ended with all its workers."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from signalbox.errors import RejectedError
from signalbox.local.emulator import lifecycle
from signalbox.local.processes import is_alive
from signalbox.local.state import State


def test_a_port_in_use_is_reported_with_a_free_one_to_try(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(RejectedError, match=rf"port {port} of 127.0.0.1 is taken .*--port {port + 1}"):
            lifecycle.start(State(tmp_path), port=port)


def test_an_emulator_that_was_not_started_is_not_found(tmp_path):
    state = State(tmp_path)

    assert lifecycle.running(state) is None
    assert lifecycle.stop(state) is False


def test_a_lock_file_that_no_process_holds_names_no_process(tmp_path):
    state = State(tmp_path)
    state.emulator.mkdir(parents=True)
    state.lock.write_text(str(os.getpid()))

    assert lifecycle.process_id(state) is None


@pytest.mark.emulator
def test_a_started_emulator_is_found_again(stage_state, running):
    assert lifecycle.running(stage_state) == running


@pytest.mark.emulator
def test_the_file_with_keys_is_readable_by_its_owner_only(stage_state, running):
    assert stage_state.running.stat().st_mode & 0o777 == 0o600


@pytest.mark.emulator
def test_a_killed_emulator_is_noticed_and_its_workers_are_ended(tmp_path):
    state = State(tmp_path)
    lifecycle.start(state, port=0)
    leader = lifecycle.process_id(state)
    command = [sys.executable, "-c", "print('here', flush=True); input()", f"{state.temporary}/worker"]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    worker.stdout.readline()

    os.kill(leader, signal.SIGKILL)
    _wait_until(lambda: not is_alive(leader))

    assert lifecycle.running(state) is None
    assert lifecycle.stop(state) is True
    assert not is_alive(worker.pid)
    assert not state.running.exists()


@pytest.mark.emulator
def test_an_emulator_with_a_lifeline_ends_when_the_lifeline_is_closed(tmp_path):
    state = State(tmp_path)
    lifeline, held = os.pipe()
    lifecycle.start(state, port=0, lifeline=lifeline)
    leader = lifecycle.process_id(state)

    os.close(held)

    _wait_until(lambda: not is_alive(leader))
    os.close(lifeline)
    lifecycle.stop(state)


def _wait_until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
