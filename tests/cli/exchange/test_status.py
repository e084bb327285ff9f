"""`signalbox status` against a stage."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from signalbox.cli.exchange.status import COLOURS
from signalbox.exchange.control.status import ResourceState
from tests.cli.exchange.stage import exchange_stage, signalbox
from tests.cli.shared.stage import FakeStage, cells
from tests.fakes.aws import aws  # noqa: F401 - a fixture

CONDITION = {
    "name": "q_alice",
    "state": "lagging",
    "ordered": False,
    "queued": 12,
    "in_flight": 3,
    "lag_seconds": 90.4,
    "rate_in": 2.5,
    "rate_out": None,
    "bytes_in": 100.0,
    "rejects": 4,
    "retries": 5,
    "redelivered": 0,
    "dropped": 0,
    "alternate": 0,
    "dead_letters": 6,
    "last_activity": None,
    "last_consumer": None,
}


@pytest.fixture
def stage(aws) -> Iterator[FakeStage]:  # noqa: F811
    with exchange_stage() as stage:
        exchange = {**CONDITION, "name": "xpublic", "state": "idle", "lag_seconds": None, "rate_out": 0.25}
        stage.replies["status"] = lambda _: {"exchanges": [exchange], "queues": [CONDITION]}
        yield stage


def test_each_exchange_and_queue_is_shown_with_its_state(stage):
    rows = cells(signalbox("status").stdout)

    assert ["q_alice", "lagging", "12", "3", "90", "s", "2.5", "?", "4", "5", "6"] in rows
    assert ["xpublic", "idle", "12", "3", "2.5", "0.25", "4", "5", "6"] in rows
    assert any(row[:3] == ["?", "not", "known:"] for row in rows)


@pytest.mark.parametrize("names", [[], ["xpublic", "q_alice*"]])
def test_it_may_be_asked_for_by_name(stage, names):
    signalbox("status", *names)

    asked = [command for command in stage.asked if command["command"] == "status"]
    assert [command.get("names", []) for command in asked] == [names]


def test_json_output_is_the_stages_reply(stage):
    document = json.loads(signalbox("status", "--json").stdout)

    assert document["queues"] == [CONDITION]


@pytest.mark.parametrize(
    ("document", "shown"),
    [
        ({"exchanges": [], "queues": []}, "no exchanges and no queues\n"),
        ({"exchanges": [], "queues": [CONDITION]}, "lagging"),
    ],
    ids=["nothing", "queues alone"],
)
def test_an_empty_status_prints_no_table(stage, document: dict[str, Any], shown: str):
    stage.replies["status"] = lambda _: document

    text = signalbox("status").stdout

    assert shown in text
    assert "exchange " not in text


def test_every_state_has_a_colour():
    assert COLOURS.keys() == {state.value for state in ResourceState}


def test_it_is_shown_again_and_again_until_a_signal_comes(stage):
    looks = threading.Event()

    def second_look(_command: dict[str, Any]) -> dict[str, Any]:
        if stage.asked:
            looks.set()
        return {"exchanges": [], "queues": []}

    def end() -> None:
        looks.wait(30)
        os.kill(os.getpid(), signal.SIGINT)

    stage.replies["status"] = second_look
    interruption = threading.Thread(target=end)
    interruption.start()

    result = signalbox("status", "--watch", "--interval", "1", "--json")

    interruption.join()
    assert result.exit_code == 130
    assert json.loads(result.stdout.splitlines()[0]) == {"exchanges": [], "queues": []}
