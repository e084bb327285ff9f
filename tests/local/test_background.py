"""A command in the background has a low priority, and ends with what started it."""

import os
import signal
import subprocess
import sys

import pytest

from tests.tiers.background import AUTOGROUP

BACKGROUND = (sys.executable, "-m", "tests.tiers.background")


def test_a_command_has_a_low_priority_in_a_session_of_its_own_and_keeps_its_status():
    program = "import os; print(os.nice(0), os.getsid(0) == os.getpid()); raise SystemExit(3)"

    done = subprocess.run([*BACKGROUND, sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (done.stdout.split(), done.returncode) == (["19", "True"], 3)


@pytest.mark.skipif(not AUTOGROUP.exists(), reason="the kernel schedules without sessions")
def test_the_session_of_a_command_has_a_low_priority():
    done = subprocess.run([*BACKGROUND, "cat", str(AUTOGROUP)], capture_output=True, text=True, check=True)

    assert done.stdout.endswith(" nice 5\n")


def started(program: str, *, ignored: bool, number: signal.Signals) -> "subprocess.Popen[str]":
    """Start a program in the background, whose parent ignores a signal, or does not, as a shell decides."""
    action = signal.SIG_IGN if ignored else signal.SIG_DFL
    return subprocess.Popen(
        [*BACKGROUND, sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, action),  # noqa: PLW1509 - only for the program
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command(number):
    program = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    with started(program, ignored=False, number=number) as process:
        assert process.stdout
        command = int(process.stdout.readline())
        process.send_signal(number)
        process.wait()

    with pytest.raises(ProcessLookupError):
        os.kill(command, 0)


def test_a_signal_that_is_ignored_stays_ignored():
    program = "import sys; print('begun', flush=True); sys.exit(int(sys.stdin.readline()))"
    with started(program, ignored=True, number=signal.SIGHUP) as process:
        assert process.stdout
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        process.communicate("3\n")

    assert process.returncode == 3
