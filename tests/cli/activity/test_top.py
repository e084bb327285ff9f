"""`signalbox top` against a stage, and its screen on terminals of all widths."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from signalbox.aws.activity.stage import StageActivity
from signalbox.cli.activity.screen import _bars, screen, usd
from signalbox.cli.main import app
from signalbox.errors import EffectFailed
from tests.cli.shared.stage import serving
from tests.fakes.aws import aws, exchange_table, split_table  # noqa: F401 - fixtures

SOURCES = {"rendezvous": {"queues": ["broker"], "functions": ["poll"]}, "live": {"queues": [], "functions": []}}
OUTPUTS = {
    "SplitTable": "Splits",
    "ExchangeTable": "Exchanges",
    "ExchangePrefix": "",
    "ActivitySources": json.dumps(SOURCES),
}
NUMBERS = {"rate", "backlog", "oldest_seconds", "errors", "usd_least", "usd_most"}


@pytest.fixture
def stage(aws, split_table, exchange_table) -> Iterator[Any]:  # noqa: F811
    cloudwatch = boto3.client("cloudwatch")
    with serving(OUTPUTS, []):
        for namespace, name, kind, value, number in (
            ("Signalbox", "OfferDenied", "service", "rendezvous", 30),
            ("Signalbox", "DeadLetterDead", "service", "live", 3),
            ("AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", "broker", 7),
            ("AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", "broker", 200),
        ):
            dimensions = [{"Name": kind, "Value": value}]
            data = [{"MetricName": name, "Value": number, "Dimensions": dimensions}]
            cloudwatch.put_metric_data(Namespace=namespace, MetricData=data)
        yield cloudwatch


def top(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["top", "--aws", *arguments], catch_exceptions=False)


def test_each_capability_has_a_row_with_its_numbers_and_its_command(stage):
    shown = top()

    lines = [line.rstrip() for line in shown.stdout.splitlines() if line.startswith(" ")]
    rows = {line.split()[0]: line for line in lines if line and "─" not in line}
    assert list(rows) == ["capability", "rendezvous", "splitting", "exchange", "live", "history"]
    assert "█" in rows["rendezvous"]
    words = rows["rendezvous"].split()
    assert words[words.index("7") :][:4] == ["7", "3", "m", "0"]
    assert rows["rendezvous"].endswith("signalbox rendezvous stats --aws")
    assert rows["exchange"].endswith("signalbox status --aws")
    assert "errors of live: signalbox history query" in shown.stdout
    assert "then signalbox trace ID" in shown.stdout
    assert "errors of rendezvous" not in shown.stdout


def test_json_is_one_document_with_the_question_of_each_number(stage):
    document = json.loads(top("--json", "--once").stdout)

    found = {one["capability"]: one for one in document["capabilities"]}
    assert set(document) == {"at", "stage", "capabilities"}
    assert all(set(one) >= NUMBERS for one in found.values())
    assert found["rendezvous"]["minutes"][-1] == 30
    assert found["rendezvous"]["questions"]["backlog"] == "signalbox rendezvous stats --aws"
    assert found["live"]["errors"] == 3


def test_another_stage_is_named_in_the_commands(stage):
    template = {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}
    outputs = {name: {"Value": value} for name, value in {**OUTPUTS, "RendezvousUrl": "https://x/"}.items()}
    boto3.client("cloudformation").create_stack(
        StackName="prod", TemplateBody=json.dumps({**template, "Outputs": outputs})
    )

    (document,) = [json.loads(top("--json", "--stage", "prod").stdout)]

    assert document["capabilities"][2]["questions"]["more"] == "signalbox status --aws --stage prod"


def test_it_is_refreshed_until_a_signal_comes_and_survives_a_failed_read(stage, monkeypatch):
    reads, over = [], threading.Event()
    read = StageActivity.read

    def failing_once(self, now):
        reads.append(now)
        if len(reads) == 2:
            raise EffectFailed("AWS answered Throttling")
        if len(reads) == 3:
            over.set()
        return read(self, now)

    def end() -> None:
        over.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(StageActivity, "read", failing_once)
    interruption = threading.Thread(target=end)
    interruption.start()

    result = top("--json", "--interval", "1")

    interruption.join()
    documents = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 130
    assert [one.get("problem") for one in documents[:2]] == [None, "AWS answered Throttling"]
    assert documents[0]["at"] == documents[1]["at"]


def document(**numbers: Any) -> dict[str, Any]:
    row = {
        "capability": "rendezvous",
        "unit": "clients",
        "rate": 1234.5678,
        "minutes": [0] * 58 + [1, 600],
        "backlog": 12_000,
        "oldest_seconds": 4000,
        "errors": 17,
        "usd_least": 0.12,
        "usd_most": 3.4,
        "questions": {"more": "signalbox rendezvous stats", "errors": 'signalbox history query "SELECT 1"'},
    }
    return {"at": "2026-11-23T12:00:00+00:00", "stage": "stage signalbox in eu-west-1", "capabilities": [row | numbers]}


def drawn(width: int, *, problem: str = "", **numbers: Any) -> list[str]:
    console = Console(width=width, highlight=False, force_terminal=False)
    with console.capture() as shown:
        console.print(screen(document(**numbers), problem, width=width))
    return shown.get().splitlines()


@pytest.mark.parametrize("width", [60, 75, 76, 107, 108, 139, 140, 200])
def test_the_screen_fits_the_terminal_and_loses_no_number(width):
    lines = drawn(width)

    text = " ".join(" ".join(lines).split())
    assert max(map(len, lines)) <= width
    for number in ("1,235/s", "12,000", "66 m", "17", "3.4000", "signalbox rendezvous stats", "SELECT 1"):
        assert number in text, number
    assert ("last hour rate" in text) is (width >= 108)
    assert ("0.1200 to 3.4000" in text) is (width >= 76)


def test_the_problem_of_the_last_read_is_shown_below():
    assert drawn(100, problem="AWS answered Throttling")[-1].strip() == "AWS answered Throttling"


def test_an_idle_capability_has_no_bars_and_no_age():
    idle = {"minutes": [0] * 60, "rate": 0, "backlog": 0, "oldest_seconds": None, "errors": 0}

    text = "\n".join(drawn(140, **idle))

    assert " - " in text
    assert "█" not in text
    assert "errors of" not in text


@pytest.mark.parametrize(
    ("least", "most", "text"),
    [(0, 0, "0"), (0, 0.00001, "< 0.0001"), (0.00121, 0.00122, "0.0012"), (0.0012, 0.34, "0.0012 to 0.3400")],
)
def test_a_cost_is_a_range_with_four_decimals(least, most, text):
    assert usd(least, most) == text


def test_a_minute_with_any_work_has_a_bar():
    assert _bars([0, 0, 1, 0, 700, 0]) == " ▁█"
    assert _bars([]) == ""
