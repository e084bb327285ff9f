"""`signalbox local` acts on the stage of the current folder, and asks before it deletes one."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from signalbox.cli.local import _demo
from signalbox.cli.main import app
from signalbox.cli.shared import confirmation
from signalbox.errors import RejectedError
from signalbox.local.demo import evidence
from signalbox.local.files import CHECKOUT
from signalbox.local.processes import is_alive
from signalbox.local.stage_folder import StageFolder, find_stage_folder
from signalbox.verify.report import Row, TrialOutcome

# A process in a group of its own that holds a stage's lock with its id in it, as the emulator does.
HOLD = """
import fcntl, os, sys
lock = open(sys.argv[1], "w")
fcntl.flock(lock, fcntl.LOCK_EX)
print(os.getpid(), file=lock, flush=True)
print("held", flush=True)
sys.stdin.read()
"""


def local(*arguments: str, **options: str) -> Result:
    return CliRunner().invoke(app, ["local", *arguments], catch_exceptions=False, **options)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[tuple[StageFolder, int]]:
    """A stage whose emulator runs, and the emulator's process id."""
    stage_folder = StageFolder(tmp_path / "theirs" / ".signalbox")
    stage_folder.emulator.mkdir(parents=True)
    stage_folder.running.write_text(json.dumps({"port": 4599}))
    command = [sys.executable, "-c", HOLD, str(stage_folder.lock)]
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as emulator:
        assert emulator.stdout is not None
        emulator.stdout.readline()
        yield stage_folder, emulator.pid
        emulator.kill()


@pytest.mark.parametrize("command", ["down", "status", "logs"])
def test_a_folder_without_a_stage_is_refused(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(RejectedError, match=f"no local stage was started in '{tmp_path}' or above"):
        local(command)


def test_the_stage_is_that_of_the_nearest_folder(tmp_path, stage):
    stage_folder, _ = stage
    inside = stage_folder.path.parent / "a" / "b"
    inside.mkdir(parents=True)
    (inside / ".signalbox").mkdir()  # such as that of reports: no stage

    assert find_stage_folder(inside) == stage_folder
    assert find_stage_folder(CHECKOUT / "docs").path == CHECKOUT / ".signalbox"


@pytest.mark.parametrize("name", ["", "emulator", "emulator/lock", "local.json"])
def test_a_stage_of_another_user_is_refused(tmp_path, monkeypatch, name):
    """`down` deletes files and kills processes that the folder names."""
    stage_folder = StageFolder(tmp_path / ".signalbox")
    stage_folder.emulator.mkdir(parents=True)
    stage_folder.lock.touch()
    stage_folder.local.touch()
    path, real = stage_folder.path / name, Path.lstat

    def owned_by_another(self):
        status = real(self)
        return os.stat_result((*status[:4], 4_711, *status[5:])) if self == path else status

    assert find_stage_folder(tmp_path) == stage_folder
    monkeypatch.setattr(Path, "lstat", owned_by_another)
    with pytest.raises(RejectedError, match="belongs to another user"):
        find_stage_folder(tmp_path)


def test_a_stage_behind_a_link_is_refused(tmp_path):
    (tmp_path / "project").mkdir()
    (tmp_path / ".signalbox").mkdir()
    (tmp_path / ".signalbox" / "local.json").touch()
    (tmp_path / ".signalbox" / "emulator").symlink_to(tmp_path / "project")

    with pytest.raises(RejectedError, match="is a link"):
        find_stage_folder(tmp_path)


def test_the_refusal_names_the_stage_of_the_program(tmp_path, monkeypatch):
    monkeypatch.setattr(StageFolder, "is_used", property(lambda self: self.path == CHECKOUT / ".signalbox"))

    with pytest.raises(RejectedError, match=f"this program's own stage is that of '{CHECKOUT}'"):
        find_stage_folder(tmp_path)


def test_a_started_stage_is_named_with_its_folder(monkeypatch):
    local_json = {"endpoint_url": "http://127.0.0.1:4566", "rendezvous_url": "http://r/", "page_url": "http://p/"}
    monkeypatch.setattr("signalbox.local.stage.up", lambda *_, **__: {**local_json, "faults": None})
    monkeypatch.setattr("signalbox.local.stage.start_live", lambda _: None)

    result = local("up", "--no-demo")

    assert result.stdout.startswith("The stage is running on this machine.\n")
    assert f"  folder                 {CHECKOUT}\n" in result.stdout


def test_a_stage_is_stopped_by_yes_and_named_with_its_port(stage, monkeypatch):
    stage_folder, emulator = stage
    monkeypatch.chdir(stage_folder.path.parent)

    result = local("down", "--yes")

    assert result.stdout == f"Stopped: the stage in {stage_folder.path} on port 4599; its state is deleted.\n"
    assert not is_alive(emulator)


def test_a_stage_is_stopped_after_a_yes_only(stage, monkeypatch):
    stage_folder, emulator = stage
    monkeypatch.chdir(stage_folder.path.parent)
    monkeypatch.setattr(confirmation, "is_terminal", lambda: True)

    declined = local("down", input="n\n")

    assert declined.exit_code == 1
    assert f"The stage in {stage_folder.path} runs on port 4599." in declined.stderr
    assert is_alive(emulator)
    assert local("down", input="y\n").stdout.startswith("Stopped: ")


def test_a_stage_whose_data_was_destroyed_is_stopped_without_a_question(stage, monkeypatch):
    stage_folder, emulator = stage
    monkeypatch.chdir(stage_folder.path.parent)
    stage_folder.local.write_text(json.dumps({"destroyed": "resources"}))
    with pytest.raises(RejectedError, match="give --yes"):
        local("down")
    stage_folder.local.write_text(json.dumps({"destroyed": "everything"}))

    assert local("down").stdout.startswith("Stopped: ")

    assert not is_alive(emulator)


@pytest.mark.parametrize("command", [("down",), ("up", "--fresh")], ids=" ".join)
def test_a_running_stage_is_not_deleted_where_nobody_can_be_asked(stage, monkeypatch, command):
    stage_folder, emulator = stage
    monkeypatch.chdir(stage_folder.path.parent)
    if command[0] == "up":  # which starts the stage of its own checkout only
        monkeypatch.setattr("signalbox.local.stage_folder.StageFolder", lambda: stage_folder)

    with pytest.raises(RejectedError, match=r"standard input is no terminal.* give --yes"):
        local(*command)
    assert is_alive(emulator)


def test_the_status_names_the_folder(tmp_path, monkeypatch):
    stage_folder = StageFolder(tmp_path / ".signalbox")
    stage_folder.emulator.mkdir(parents=True)
    stage_folder.lock.touch()
    monkeypatch.chdir(tmp_path)

    result = local("status", "--json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["folder"] == str(stage_folder.path)


LOCAL = {
    "outputs": {},
    "region": "us-east-1",
    "rendezvous_url": "http://127.0.0.1:4599/rendezvous/",
    "endpoint_url": "http://127.0.0.1:4599",
    "admin_credentials": {"access_key_id": "AKIA1", "secret_access_key": "secret"},
    "websocket_url": "ws://127.0.0.1:4599/live-ws",
    "realm": "xtrial.fifo",
    "live_users": [],
}


@pytest.fixture
def demonstrations(monkeypatch) -> list[str]:
    """The capabilities that were shown, each time that one was."""
    shown: list[str] = []

    def show(capability: str) -> list[Row]:
        shown.append(capability)
        return [Row(capability, "seen", TrialOutcome.OK, detail="as it should be")]

    monkeypatch.setattr("signalbox.local.stage.start_live", lambda _: None)
    monkeypatch.setattr(evidence, "first_evidence", lambda _: show("rendezvous"))
    monkeypatch.setattr(evidence, "evidence", lambda *_, **__: show("live"))
    return shown


def test_of_an_unchanged_stage_only_rendezvous_is_shown_again(tmp_path, demonstrations, capsys):
    def demo(**options: bool) -> list[Row]:
        return _demo(tmp_path, LOCAL, **{"again": False, "kubernetes": False, "as_json": False, **options})

    first, second = demo(), demo()

    assert demonstrations == ["rendezvous", "live", "rendezvous"]
    assert first == second
    assert "Nothing has changed since the demo of" in capsys.readouterr().out
    demo(again=True)
    assert demonstrations[3:] == ["rendezvous", "live"]
