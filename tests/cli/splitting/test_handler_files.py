"""Changes of a handler's code, its terminal, and templates as files."""

import sys
from pathlib import Path

import pytest

from signalbox.cli.splitting.handler.process import interpreter
from signalbox.cli.splitting.handler.source_files import SourceFiles
from signalbox.cli.splitting.handler.template_file import parse_template
from signalbox.clients.splitting.handler.template import InvalidTemplate
from tests.patience import wait_for
from tests.terminals import CTRL_C, INTERRUPTED, terminal


def test_changes_are_those_of_python_files_since_the_last_look(tmp_path):
    (tmp_path / "package").mkdir()
    for name in ("kept.py", "changed.py", "removed.py"):
        (tmp_path / "package" / name).write_text("1")
    files = SourceFiles(tmp_path)

    (tmp_path / "package" / "changed.py").write_text("2, longer")
    (tmp_path / "package" / "removed.py").unlink()
    (tmp_path / "added.py").write_text("1")
    (tmp_path / "data.json").write_text("1")

    assert files.changed() == ["added.py", "package/changed.py", "package/removed.py"]
    assert files.changed() == []


@pytest.mark.parametrize("folder", [".git", "node_modules", "venv", "__pycache__"])
def test_folders_that_are_not_the_users_code_are_not_watched(tmp_path, folder):
    (tmp_path / folder / "lib").mkdir(parents=True)
    if folder == "venv":
        (tmp_path / folder / "pyvenv.cfg").touch()
    files = SourceFiles(tmp_path)

    (tmp_path / folder / "lib" / "module.py").write_text("1")

    assert files.changed() == []


DEBUGGED = """
def handler(event, context):
    breakpoint()
    return "done"
"""
PROGRAM = """
import os, pathlib, sys, termios, threading
from datetime import timedelta
from signalbox.cli.shared.signals import Interrupted, interruptible
from signalbox.cli.splitting.handler.process import Handler, HandlerProcess

before = termios.tcgetattr(0)
handler = Handler("app.handler", pathlib.Path.cwd(), sys.executable, os.environ, "arn", timedelta(seconds=1))
try:
    with interruptible(), HandlerProcess(handler, threading.Event()).running() as process:
        print("result", process.invoke({}, "1").response, flush=True)
        process.invoke({}, "2")
except Interrupted as interruption:
    print("ended", interruption.status, termios.tcgetattr(0) == before, flush=True)
"""


def test_a_breakpoint_gets_the_terminal_beyond_the_timeout_and_ctrl_c_ends_it(tmp_path):
    (tmp_path / "app.py").write_text(DEBUGGED)

    with terminal([sys.executable, "-c", PROGRAM], tmp_path, {"PYTHONPATH": str(Path.cwd())}) as shown:
        wait_for(lambda: shown.written.count(b"(Pdb) ") == 1, "the breakpoint")
        shown.type(b"import time; time.sleep(1.2)\n")
        wait_for(lambda: shown.written.count(b"(Pdb) ") == 2, "the debugger's next prompt")
        shown.type(b"c\n")
        wait_for(lambda: shown.written.count(b"(Pdb) ") == 3, "the second breakpoint")
        shown.type(CTRL_C)
        shown.process.wait(30)

    assert shown.after("result ") == ['"done"']
    text = shown.written.decode()
    assert f"ended {INTERRUPTED} True" in text
    assert "a debugger is used: the time-out does not end this batch" in text


def test_the_handlers_python_is_chosen_or_that_of_the_virtual_environment_or_ours():
    assert interpreter("python3.9", {"VIRTUAL_ENV": "/venv"}) == "python3.9"
    assert interpreter(None, {"VIRTUAL_ENV": "/venv"}) == str(Path("/venv/bin/python"))
    assert interpreter(None, {}) == sys.executable


def test_short_forms_of_cloudformations_functions_are_references():
    text = "a: !Ref Table\nb: !Sub '${AWS::Region}-x'\nc: !GetAtt Queue.Arn\nd: !Join ['-', [!Ref A, b]]\ne: !If {x: 1}"

    assert parse_template(text, "template.yaml") == {
        "a": {"Ref": "Table"},
        "b": {"Fn::Sub": "${AWS::Region}-x"},
        "c": {"Fn::GetAtt": "Queue.Arn"},
        "d": {"Fn::Join": ["-", [{"Ref": "A"}, "b"]]},
        "e": {"Fn::If": {"x": 1}},
    }


def test_a_template_of_cdk_is_json():
    assert parse_template('{\n\t"Resources": {}}', "x.template.json") == {"Resources": {}}


def test_a_text_that_is_no_template_is_refused():
    with pytest.raises(InvalidTemplate, match="is not YAML"):
        parse_template("a: [", "template.yaml")
