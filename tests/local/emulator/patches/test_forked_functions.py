"""Processes of functions are forked from one that has imported the SDK, and have everything else of their own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from signalbox.local.emulator.forks import NICENESS
from signalbox.local.emulator.patches.forked_functions import Forks, with_forks
from signalbox.local.processes import is_alive, processes_naming
from tests.local.emulator.functions import invoke, make_function
from tests.patience import wait_for

STATE = """
import json, os, signal, sys
print(json.dumps({
    "arguments": sys.argv, "name": __name__, "folder": os.getcwd(), "variables": dict(os.environ),
    "parent": os.getppid(), "group": os.getpgrp(), "sdk": "botocore.handlers" in sys.modules,
    "end of a child": signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL, "files": sorted(os.listdir("/proc/self/fd")),
}), flush=True)
"""
ECHO = "import sys\nfor line in sys.stdin:\n    print(line.strip().upper(), flush=True)\n"
LOWEST_PRIORITY = 19  # of the operating system
COUNTED = """
import os
calls = []
def handler(event, context):
    calls.append(1)
    return [len(calls), os.getpid()]
"""


@pytest.fixture(scope="module")
def forks():
    return Forks()


@pytest.fixture
def start(forks, tmp_path):
    """Start a program, and end it after the test."""
    started = []

    def start_program(text, **variables):
        program = tmp_path / f"program {len(started)}.py"
        program.write_text(text)
        process = forks.start([sys.executable, str(program)], cwd=str(tmp_path), env=variables)
        started.append(process)
        return process

    yield start_program
    for process in started:
        process.kill()
        process.wait(10)


def test_a_process_is_as_if_the_interpreter_had_started_it(start, tmp_path, monkeypatch):
    monkeypatch.setenv("THEIRS", "not for functions")

    state = json.loads(start(STATE, MINE="1").stdout.readline())

    assert state["arguments"] == [f"{tmp_path}/program 0.py"]
    assert (state["name"], state["folder"]) == ("__main__", str(tmp_path))
    assert state["variables"] == {"MINE": "1"}
    assert (state["end of a child"], state["group"]) == (True, os.getpgrp())
    assert state["files"] == ["0", "1", "2", "3"]  # and the one that lists them


def test_processes_share_the_import_of_the_sdk_and_nothing_else(start):
    first, second = (json.loads(start(STATE, WHICH=which).stdout.readline()) for which in "12")

    assert first["sdk"] is second["sdk"] is True
    assert first["parent"] == second["parent"] != os.getpid()
    assert [one["variables"]["WHICH"] for one in (first, second)] == ["1", "2"]


def test_a_process_gives_way_to_the_emulator(start):
    expected = min(os.getpriority(os.PRIO_PROCESS, 0) + NICENESS, LOWEST_PRIORITY)

    assert os.getpriority(os.PRIO_PROCESS, start(ECHO).pid) == expected


def test_a_process_is_found_by_its_command_line_and_killed_alone(start, tmp_path):
    killed, other = start(ECHO), start(ECHO)
    for process in (killed, other):
        process.stdin.write("ready\n")
        assert process.stdout.readline() == "READY\n"

    assert processes_naming(f"{tmp_path}/program 0.py") == [killed.pid]
    os.kill(killed.pid, signal.SIGKILL)

    assert killed.wait(10) == killed.poll() == 0
    assert killed.stdout.readline() == ""
    killed.terminate()  # no error
    other.stdin.write("still there\n")
    assert (other.stdout.readline(), other.poll()) == ("STILL THERE\n", None)


def test_an_end_is_waited_for(start):
    process = start(ECHO)

    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.stdin.close()

    assert process.wait(10) == 0


def test_a_failed_program_leaves_its_traceback_and_is_collected(start):
    process = start("raise RuntimeError('no disk')\n")

    assert process.stderr.read().endswith("RuntimeError: no disk\n")
    assert process.wait(10) == 0
    wait_for(lambda: not Path(f"/proc/{process.pid}").exists(), "the collected process")


def test_the_forking_process_ends_with_the_emulator(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(STATE)
    forks = Forks()
    process = forks.start([sys.executable, str(program)], cwd=str(tmp_path), env={})
    parent = json.loads(process.stdout.readline())["parent"]

    del forks

    wait_for(lambda: not is_alive(parent), "the end of the parent")


def test_only_programs_of_python_are_forked(forks):
    popen = with_forks(lambda *arguments, **named: (arguments, named), forks)

    assert popen(["node", "program.js"], cwd="/") == ((["node", "program.js"],), {"cwd": "/"})


@pytest.mark.emulator
@pytest.mark.release
def test_an_instance_that_is_killed_starts_anew(running):
    session = running.session()
    make_function(session, "counted", COUNTED)
    count, process = invoke(session, "counted")["payload"]
    assert invoke(session, "counted")["payload"] == [count + 1, process]

    os.kill(process, signal.SIGKILL)
    wait_for(lambda: not is_alive(process), "the end of the instance")

    count, anew = invoke(session, "counted")["payload"]
    assert count == 1
    assert anew != process
