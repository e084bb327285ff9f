"""Tests have an environment of their own, and are skipped where a tool of theirs cannot be prepared."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from signalbox.errors import UnavailableError
from signalbox.local.cdk import app_command
from signalbox.local.files import CHECKOUT
from tests import preparation

SHOW = """
import json, os, time
from tests.environment import settle
settle()
mask = os.umask(0)
print(json.dumps({"time zone": time.tzname[0], "umask": mask, **{name: os.environ.get(name) for name in NAMES}}))
"""
THEIRS = {
    "TERM": "xterm",
    "COLUMNS": "40",
    "LC_ALL": "C",
    "TZ": "Pacific/Auckland",
    "AWS_PROFILE": "theirs",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def test_tests_see_nothing_of_their_users_environment() -> None:
    program = f"NAMES = {list(THEIRS)}\n{SHOW}"

    shown = subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, env={**os.environ, **THEIRS}, capture_output=True, check=True
    )

    unset = dict.fromkeys(THEIRS)
    expected = {**unset, "TERM": "dumb", "TZ": "UTC", "time zone": "UTC", "umask": 0o022}
    assert json.loads(shown.stdout) == expected


def failing() -> None:
    raise UnavailableError("no network")


@pytest.fixture
def marked() -> Callable[..., list[str]]:
    """A function that prepares a test on a stage, without a network, and returns the reasons why it is skipped."""
    reasons: list[str] = []
    item = SimpleNamespace(
        get_closest_marker=lambda name: name == "emulator",
        add_marker=lambda marker: reasons.append(marker.kwargs["reason"]),
    )

    def prepare(*, is_required: bool) -> list[str]:
        preparation.prepare([item], is_required=is_required, needed={"emulator": ("emulator", failing)})
        return reasons

    return prepare


def test_what_cannot_be_prepared_is_skipped_with_the_command(marked) -> None:
    assert marked(is_required=False) == ["the emulator could not be prepared, which `make test` does: no network"]


def test_make_fails_where_something_cannot_be_prepared(marked) -> None:
    with pytest.raises(UnavailableError):
        marked(is_required=True)


def test_the_app_runs_in_this_python() -> None:
    assert app_command("python3 app.py") == [sys.executable, "app.py"]
    assert app_command("node 'an app.js'") == ["node", "an app.js"]
