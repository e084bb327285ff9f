"""Processes are found by a part of their command lines."""

import subprocess
import sys
from pathlib import Path

import pytest

from signalbox.local import processes


@pytest.fixture
def sleeper(tmp_path):
    """A waiting process whose command line has a path with a space."""
    command = [sys.executable, "-c", "print('here', flush=True); input()", f"{tmp_path}/a worker.py"]
    started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    started.stdout.readline()  # until then /proc may not have its command line
    yield started
    started.kill()
    started.wait()


# A machine has /proc or ps, and most have both; without /proc the command lines come from ps.
SOURCES = {"from /proc": "/proc/self", "from ps": "/bin/ps"}


@pytest.mark.parametrize("source", [source for source, path in SOURCES.items() if Path(path).exists()])
def test_a_process_is_found_by_a_part_of_its_command_line(sleeper, tmp_path, monkeypatch, source):
    proc = "/proc" if source == "from /proc" else "/nowhere"
    monkeypatch.setattr(processes, "PROCESSES", Path(proc))

    assert processes.processes_naming(f"{tmp_path}/a worker") == [sleeper.pid]
    assert processes.processes_naming(f"{tmp_path}/another") == []
    assert processes.processes_naming_each([f"{tmp_path}/{name}" for name in ("another", "a w")]) == [[], [sleeper.pid]]


def test_a_process_is_alive_until_it_ends(sleeper):
    assert processes.is_alive(sleeper.pid)

    sleeper.stdin.close()
    while processes.is_alive(sleeper.pid):
        pass

    assert not processes.is_alive(sleeper.pid)


def test_a_zombie_is_not_alive():
    parent = "import subprocess, sys; child = subprocess.Popen(['true']); print(child.pid, flush=True); input()"
    process = subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child = int(process.stdout.readline())
    while processes.is_alive(child):
        pass

    assert Path(f"/proc/{child}/stat").read_text().split()[2] == "Z"
    process.communicate("")
