"""`signalbox top` on the local stage: the metrics of its functions and queues, at once, and on a terminal."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from signalbox.cli.main import app
from signalbox.cli.shared import kept_settings
from signalbox.cli.shared.deployment import Deployment
from signalbox.local import stage
from tests.patience import wait_for
from tests.terminals import CTRL_C, INTERRUPTED, terminal

pytestmark = pytest.mark.emulator


def test_a_publication_is_work_of_the_exchange_of_live_and_of_history(
    deployed: dict[str, Any], deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signalbox.cli.shared.deployment.find_deployment", lambda **_: deployment)

    def run(*words: str) -> str:
        return CliRunner().invoke(app, words, catch_exceptions=False).stdout

    def work() -> dict[str, int]:
        return {one["capability"]: sum(one["minutes"]) for one in json.loads(run("top", "--json"))["capabilities"]}

    before = work()
    run("publish", deployed["realm"], "trial.top", "hello")

    wait_for(lambda: work()["history"] > before["history"], "the event of the publication among the metrics")
    assert work()["exchange"] > before["exchange"]


def test_on_a_terminal_it_refreshes_in_place_until_ctrl_c(deployed: dict[str, Any], tmp_path: Path) -> None:
    program = str(Path(sys.executable).with_name("signalbox"))
    (tmp_path / ".signalbox").mkdir()
    (tmp_path / ".signalbox" / "local.json").write_text(json.dumps(deployed))

    with terminal([program, "top", "--interval", "1"], tmp_path, {"COLUMNS": "100"}) as shown:
        wait_for(lambda: shown.written.count(b"rendezvous") > 2, "a refreshed screen")
        shown.type(CTRL_C)
        assert shown.process.wait(30) == INTERRUPTED

    assert b"Traceback" not in shown.written


def test_a_local_stage_records_its_settings(deployed: dict[str, Any]) -> None:
    found = kept_settings.plan(deployed["outputs"], ["poll_hold_seconds=5"], place=stage.local_context([]))

    assert found.context == ["poll_hold_seconds=5"]
    assert found.lines == ("setting changed: poll_hold_seconds = 10 → 5",)
