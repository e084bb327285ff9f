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
from signalbox.local.stage_folder import StageFolder


def test_a_port_in_use_is_reported_with_a_free_one_to_try(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        with pytest.raises(RejectedError, match=rf"port {port} of 127.0.0.1 is taken .*--port {port + 1}"):
            lifecycle.start(StageFolder(tmp_path), port=port)


def test_an_emulator_that_was_not_started_is_not_found(tmp_path):
    stage_folder = StageFolder(tmp_path)

    assert lifecycle.running(stage_folder) is None
    assert lifecycle.stop(stage_folder) is False


def test_a_lock_file_that_no_process_holds_names_no_process(tmp_path):
    stage_folder = StageFolder(tmp_path)
    stage_folder.emulator.mkdir(parents=True)
    stage_folder.lock.write_text(str(os.getpid()))

    assert lifecycle.process_id(stage_folder) is None


@pytest.mark.emulator
def test_a_started_emulator_is_found_again(emulator_folder, running):
    assert lifecycle.running(emulator_folder) == running


@pytest.mark.emulator
def test_the_file_with_keys_is_readable_by_its_owner_only(emulator_folder, running):
    assert emulator_folder.running.stat().st_mode & 0o777 == 0o600


@pytest.mark.emulator
def test_a_killed_emulator_is_noticed_and_its_workers_are_ended(tmp_path):
    stage_folder = StageFolder(tmp_path)
    lifecycle.start(stage_folder, port=0)
    leader = lifecycle.process_id(stage_folder)
    command = [sys.executable, "-c", "print('here', flush=True); input()", f"{stage_folder.temporary}/worker"]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    worker.stdout.readline()

    os.kill(leader, signal.SIGKILL)
    _wait_until(lambda: not is_alive(leader))

    assert lifecycle.running(stage_folder) is None
    assert lifecycle.stop(stage_folder) is True
    assert not is_alive(worker.pid)
    assert not stage_folder.running.exists()


@pytest.mark.emulator
def test_an_emulator_with_a_lifeline_ends_when_the_lifeline_is_closed(tmp_path):
    stage_folder = StageFolder(tmp_path)
    lifeline, held = os.pipe()
    lifecycle.start(stage_folder, port=0, lifeline=lifeline)
    leader = lifecycle.process_id(stage_folder)

    os.close(held)

    _wait_until(lambda: not is_alive(leader))
    os.close(lifeline)
    lifecycle.stop(stage_folder)


def _wait_until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
