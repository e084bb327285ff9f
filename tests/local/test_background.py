"""A command in the background has the lowest priority, and ends with what started it."""

import os
import signal
import subprocess
import sys

import pytest

from signalbox.local.background import AUTOGROUP

BACKGROUND = (sys.executable, "-m", "signalbox.local.background")


def test_a_command_has_the_lowest_priority_in_a_session_of_its_own_and_keeps_its_status():
    program = "import os; print(os.nice(0), os.getsid(0) == os.getpid()); raise SystemExit(3)"

    done = subprocess.run([*BACKGROUND, sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (done.stdout.split(), done.returncode) == (["19", "True"], 3)


@pytest.mark.skipif(not AUTOGROUP.exists(), reason="the kernel schedules without sessions")
def test_the_session_of_a_command_has_the_lowest_priority():
    done = subprocess.run([*BACKGROUND, "cat", str(AUTOGROUP)], capture_output=True, text=True, check=True)

    assert done.stdout.endswith(" nice 19\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command(number):
    program = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    with subprocess.Popen([*BACKGROUND, sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout
        command = int(started.stdout.readline())
        started.send_signal(number)
        started.wait()

    with pytest.raises(ProcessLookupError):
        os.kill(command, 0)
