"""A function's process has a lower priority than the emulator."""

import os
import subprocess
import sys

from signalbox.local.emulator.patches.function_priority import NICENESS, with_low_priority

LOWEST_PRIORITY = 19  # of the operating system


def test_a_functions_process_gives_way_to_the_emulator():
    process = with_low_priority(subprocess.Popen)([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

    try:
        expected = min(os.getpriority(os.PRIO_PROCESS, 0) + NICENESS, LOWEST_PRIORITY)
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == expected
    finally:
        process.communicate(b"\n")


def test_a_process_that_has_ended_is_no_error():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()

    assert with_low_priority(lambda: process)() is process
