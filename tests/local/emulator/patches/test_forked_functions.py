"""Processes of functions are forked from one that has imported the SDK, and have everything else of their own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from signalbox.local.emulator import forks
from signalbox.local.emulator.patches import forked_functions
from signalbox.local.emulator.patches.forked_functions import Forks, kind_of, with_forks
from signalbox.local.processes import is_alive, processes_naming
from tests.local.emulator.functions import invoke, make_function
from tests.patience import wait_for

STATE = """
import json, os, signal, sys, threading
print(json.dumps({
    "arguments": sys.argv, "path": sys.path[0], "name": __name__, "folder": os.getcwd(), "variables": dict(os.environ),
    "parent": os.getppid(), "group": os.getpgrp(), "sdk": "botocore.handlers" in sys.modules,
    "threads": threading.active_count(), "end of a child": signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL,
    "files": sorted(os.listdir("/proc/self/fd")),
}), flush=True)
"""
ECHO = "import sys\nfor line in sys.stdin:\n    print(line.strip().upper(), flush=True)\n"
INSTALLED = {"PYTHONPATH": os.pathsep.join(sys.path)}
COUNTED = """
import os
calls = []
def handler(event, context):
    calls.append(1)
    return [len(calls), os.getpid()]
"""


@pytest.fixture(scope="module")
def parents():
    return Forks()


@pytest.fixture
def start(parents, tmp_path):
    """Start a program, and end it after the test."""
    started = []

    def start_program(text, **variables):
        program = tmp_path / f"program {len(started)}.py"
        program.write_text(text)
        process = parents.start([sys.executable, str(program)], cwd=str(tmp_path), env={**INSTALLED, **variables})
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
    assert (state["path"], state["name"], state["folder"]) == (str(tmp_path), "__main__", str(tmp_path))
    assert state["variables"] == {**INSTALLED, "MINE": "1"}
    assert (state["threads"], state["end of a child"], state["group"]) == (1, True, os.getpgrp())
    assert state["files"] == ["0", "1", "2", "3"]  # and the one that lists them


def test_processes_share_the_import_of_the_sdk_and_nothing_else(start):
    first, second = (json.loads(start(STATE, WHICH=which).stdout.readline()) for which in "12")

    assert first["sdk"] is second["sdk"] is True
    assert first["parent"] == second["parent"] != os.getpid()
    assert [one["variables"]["WHICH"] for one in (first, second)] == ["1", "2"]


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


def test_a_failed_program_leaves_its_traceback(start):
    process = start("raise RuntimeError('no disk')\n")

    assert process.stderr.read().endswith("RuntimeError: no disk\n")
    assert process.wait(10) == 0


def test_processes_that_have_ended_are_collected(start):
    process = start("")
    process.wait(10)

    wait_for(lambda: not Path(f"/proc/{process.pid}").exists(), "the collected process")


def test_a_killed_parent_is_replaced_and_its_processes_go_on(start):
    before = start(ECHO)
    parent = json.loads(start(STATE).stdout.readline())["parent"]
    os.kill(parent, signal.SIGKILL)
    wait_for(lambda: not is_alive(parent), "the end of the parent")

    assert json.loads(start(STATE).stdout.readline())["parent"] != parent
    before.stdin.write("still there\n")
    assert before.stdout.readline() == "STILL THERE\n"


def test_a_parent_ends_with_the_emulator(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(STATE)
    parents = Forks()
    process = parents.start([sys.executable, str(program)], cwd=str(tmp_path), env=INSTALLED)
    parent = json.loads(process.stdout.readline())["parent"]

    del parents

    wait_for(lambda: not is_alive(parent), "the end of the parent")


def test_a_layers_packages_come_first(start, tmp_path):
    package = tmp_path / "layer" / "python" / "jmespath"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("MINE = True\n")
    (package / "exceptions.py").write_text("class JMESPathError(Exception): ...\n")
    text = "import sys, jmespath\nprint(jmespath.__file__, [one for one in sys.path if one.endswith('python')])\n"

    line = start(text, _LAMBDA_LAYERS_DIRS=str(tmp_path / "layer")).stdout.readline()

    assert line == f"{package / '__init__.py'} []\n"


def test_layers_and_variables_that_an_interpreter_reads_make_a_kind(tmp_path):
    (tmp_path / "unpacked").mkdir()
    for name in ("one", "two"):
        (tmp_path / name).symlink_to("unpacked")
    kinds = [
        kind_of({"_LAMBDA_LAYERS_DIRS": str(tmp_path / name), "AWS_SESSION_TOKEN": name}) for name in ("one", "two")
    ]

    assert kinds[0] == kinds[1] == ((str(tmp_path / "unpacked"),), ())
    assert kind_of({"PYTHONHASHSEED": "1", "LANG": "C", "A": "b"}) == ((), (("LANG", "C"), ("PYTHONHASHSEED", "1")))


def test_the_import_of_the_sdk_reads_no_variable_of_a_function_and_starts_no_thread():
    program = (
        "import importlib, os, sys, threading\n"
        "read = []\n"
        "own = type(os.environ).__getitem__\n"
        "type(os.environ).__getitem__ = lambda variables, name: read.append(name) or own(variables, name)\n"
        f"for name in {forks.SDK}: importlib.import_module(name)\n"
        "print(*{*read}, threading.active_count())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "HOME 1\n"
    assert "HOME" in forked_functions.READ_AT_START


def test_only_programs_of_python_are_forked():
    popen = with_forks(lambda *arguments, **named: (arguments, named), Forks())

    assert popen(["node", "program.js"], cwd="/") == ((["node", "program.js"],), {"cwd": "/"})


def test_without_descriptors_of_processes_nothing_is_replaced(monkeypatch):
    monkeypatch.delattr(os, "pidfd_open")

    assert forked_functions.PATCH.replacements() == {}


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
