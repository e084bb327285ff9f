"""A function's instance that fails to start leaves the other instances alone."""

import os
import signal
import threading
import time

import pytest

from signalbox.local.emulator.patches.failed_starts import ending_alone
from signalbox.local.processes import processes_naming
from tests.local.emulator.functions import invoke, invoke_at_once, make_function

INSTANCES = 4
# Starts slowly, so that instances are killed while they start.
SLOW_START = "import os, time\ntime.sleep(2)\ndef handler(event, context):\n    return os.getpid()\n"


def test_an_instance_that_fails_to_start_is_ended_and_its_error_is_the_result():
    def invoke_worker(worker, event):
        raise RuntimeError("killed")

    ended = []

    result = ending_alone(invoke_worker, ended.append)("worker", {"an": "event"})

    assert ended == [["worker"]]
    assert (result["status"], result["error"]) == ("error", "the instance did not start: killed")


def test_an_instance_that_starts_is_not_touched():
    assert ending_alone(lambda worker, event: {"status": "ok", "result": event}, None)("worker", 1)["result"] == 1


@pytest.mark.emulator
@pytest.mark.release
def test_instances_start_although_another_is_killed_while_it_starts(running, emulator_folder):
    session = running.session()
    make_function(session, "slow", SLOW_START)
    folder = f"{emulator_folder.temporary}{os.sep}ministack-lambda-slow-"
    killer = threading.Thread(target=_kill_one, args=(folder,))

    killer.start()
    responses = invoke_at_once(session, "slow", INSTANCES)
    killer.join()

    assert sorted(one["failed"] for one in responses) == [False] * (INSTANCES - 1) + [True]
    assert invoke(session, "slow")["failed"] is False


def _kill_one(folder):
    """Kill one of the instances when all are starting."""
    deadline = time.monotonic() + 30
    while len(starting := processes_naming(folder)) < INSTANCES and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(starting[0], signal.SIGKILL)
