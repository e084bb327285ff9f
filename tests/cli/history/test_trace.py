"""The command `trace` on a fake stage, with events in memory."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from typer.testing import CliRunner, Result

from signalbox.cli.history.trace import MAXIMUM_STORIES, _found
from signalbox.cli.history.trace_text import SHOWN, story_lines
from signalbox.cli.main import app
from signalbox.clients.deployment import LocalDeployment
from signalbox.errors import RejectedError
from signalbox.exchange.messages.headers import file_id
from signalbox.history.event import HistoryEvent
from signalbox.history.lookup import EventWindow
from signalbox.history.trace.search import MAXIMUM_IDS, NotTraced
from signalbox.history.trace.story import stories
from signalbox.kept.objects import kept_batch
from signalbox.messages import Message
from signalbox.queues import QueueName
from tests.cli.shared.stage import FakeStage, Refusal, reply_queue_url, serving
from tests.fakes.aws import aws
from tests.fakes.history import MemoryEventLookup
from tests.unit.history.trace.way import START, WAY, event

__all__ = ["aws"]
BINDINGS = [
    {"exchange": "xs_orders", "queue": "q_rain", "pattern": "weather.#"},
    {"exchange": "xs_orders", "queue": "q_orders", "pattern": "orders.*"},
]
FILE = "data/obs.txt"
RETURNED_TEXT = "not consumed by session ann of Ann: back to the deployed consumer in deployed-orders as copy-3"


@dataclass
class Trial:
    """A stage with events, which happened within the last hour."""

    stage: FakeStage
    events: list[HistoryEvent]
    unreadable: list[str]

    def add(self, *events: HistoryEvent) -> None:
        since = datetime.now(UTC) - timedelta(hours=1) - START
        self.events += [replace(one, occurred_at=one.occurred_at + since) for one in events]

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, ["trace", *arguments, "--aws"], catch_exceptions=False)


@pytest.fixture
def trial(aws: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trial]:
    events: list[HistoryEvent] = []
    unreadable_objects: list[str] = []

    class Lookup(MemoryEventLookup):
        """The events, in place of those in S3; tests/adapters/history has the real lookup."""

        usage = SimpleNamespace(requests=3, bytes=12_345)
        unreadable = unreadable_objects

    monkeypatch.setattr("signalbox.aws.history.event_lookup.S3EventLookup", lambda *_, **__: Lookup(events))
    control = boto3.client("sqs").create_queue(QueueName="signalbox-exchange-control")["QueueUrl"]
    split = boto3.client("sqs").create_queue(QueueName="signalbox-split-control")["QueueUrl"]
    outputs = {"HistoryBucket": "lake", "ExchangeControlQueueUrl": control, "ExchangePrefix": ""}
    outputs |= {"SplitControlQueueUrl": split, "SplitReplyQueueUrl": reply_queue_url(split)}
    with serving(outputs, [control, split]) as stage:
        stage.replies["bindings"] = lambda command: [one for one in BINDINGS if one["exchange"] == command["exchange"]]
        yield Trial(stage, events, unreadable_objects)


def lines(result: Result) -> list[str]:
    return result.stdout.splitlines()


def test_a_trace_shows_the_message_its_steps_its_last_places_and_the_bindings_now(trial: Trial):
    trial.add(*WAY)

    shown = trial.run("812")

    assert lines(shown)[0] == "message m-1"
    assert lines(shown)[1].startswith("topic orders.new  by alice  412 bytes  ")
    steps = [line[14:] for line in lines(shown)[3:10]]
    assert steps == [
        "     0 ms  exchange    published to xs_orders by alice",
        "  +100 ms  exchange    in the log of xs_orders as publication 812, number 4 of its topic by alice",
        "  +200 ms  exchange    a copy to q_orders as copy-1",
        "   +1.2 s  splitting     q_orders → session ann of Ann, ann-orders as copy-2",
        "                         tenant: matches '^Avi'",
        "   +1.7 s  live        posted to live session 77 of carol",
        f"  +59.2 s  splitting       {RETURNED_TEXT}",
    ]
    assert "  deployed-orders           queue of the deployed consumer: waits there" in shown.stdout
    assert lines(shown)[-3:] == [
        "bindings of xs_orders as they are now",
        "  match     q_orders  orders.*",
        "  no match  q_rain  weather.#",
    ]
    assert shown.stderr.startswith("· reading the last 7d of the history of stage signalbox")
    assert "read 12,345 bytes in 3 requests" in shown.stderr


def test_json_has_the_same_with_each_event(trial: Trial):
    trial.add(*WAY)

    document = json.loads(trial.run("copy-2", "--json").stdout)

    (message,) = document["messages"]
    assert (document["asked"], document["complete"], message["message_id"]) == ("copy-2", True, "m-1")
    assert [one.get("event_id") for one in message["steps"]] == [None, *(one.event_id for one in WAY)]
    assert [(one["target"], one["matches"]) for one in document["bindings_now"]] == [
        ("q_rain", False),
        ("q_orders", True),
    ]


def test_a_path_finds_the_messages_that_announced_the_file(trial: Trial):
    trial.add(
        *(
            event(f"u:{number}", number, "exchange", "unrouted", "dropped", message_id=f"m-{number}", source="xs",
                  topic="v03.data", file=file_id(FILE))
            for number in range(MAXIMUM_STORIES + 2)
        )
    )  # fmt: skip

    shown = trial.run(f"/{FILE}", "--no-bindings")

    assert [line for line in lines(shown) if line.startswith("message ")] == [
        f"message m-{number}" for number in range(MAXIMUM_STORIES)
    ]
    assert "2 more messages: `--json` has them" in shown.stderr
    assert trial.stage.commands == []


def test_objects_that_are_not_readable_are_named_and_counted(trial):
    trial.add(*WAY)
    trial.unreadable += [f"raw/{number}" for number in range(7)]

    shown, document = trial.run("m-1"), json.loads(trial.run("m-1", "--json").stdout)

    text = (
        "7 objects are damaged or no files of events, and were left out: raw/0, raw/1, raw/2, raw/3, raw/4 and 2 more"
    )
    assert text in shown.stderr
    assert "message m-1" in shown.stdout
    assert document["unreadable"] == trial.unreadable


def test_an_unknown_id_ends_with_what_may_help(trial: Trial):
    with pytest.raises(NotTraced, match=r"no event of the last 2d names 'm-9'\n.*about a minute; `--over 30d`"):
        trial.run("m-9", "--over", "2d")


def test_a_stage_without_history_is_refused_before_anything_is_said(capsys):
    stage = LocalDeployment({"Capabilities": "exchange"}, "us-east-1", "", "http://127.0.0.1:1", Path())

    with pytest.raises(RejectedError, match="the stage has no history: its capabilities are exchange"):
        _found(stage, "id", EventWindow(START, START), over="7d")

    assert capsys.readouterr().err == ""


def test_the_name_of_a_queue_leads_to_the_command_that_shows_it(trial: Trial):
    with pytest.raises(NotTraced, match="`signalbox status q_orders` shows it"):
        trial.run("q_orders")


@pytest.mark.parametrize(
    "arguments",
    [["m-1", "--over", "never"], ["m-1", "--over", "a week"], ["m-1", "--over", "99999999d"], [" "], ["m-\udcff"]],
)
def test_an_invalid_request_is_refused(trial: Trial, arguments):
    with pytest.raises(RejectedError):
        trial.run(*arguments)


@pytest.mark.parametrize(("kind", "outcome"), [("replayed", "dead_letters"), ("kept", "stored")])
def test_a_queue_that_is_the_source_of_an_event_is_not_asked_for_bindings(trial: Trial, kind: str, outcome: str):
    trial.add(*WAY, event("again", 70, "exchange", kind, outcome, message_id="m-1", source="q_orders"))

    shown = trial.run("m-1", "--no-filters")

    assert [one["exchange"] for one in trial.stage.asked if one["command"] == "bindings"] == ["xs_orders"]
    assert "bindings of xs_orders as they are now" in shown.stdout


def test_bindings_that_the_caller_may_not_read_leave_the_trace_as_it_is(trial: Trial):
    def refuse(_command: Any) -> object:
        raise Refusal("not yours")

    trial.stage.replies["bindings"] = refuse
    trial.add(*WAY)

    shown = trial.run("m-1")

    assert "message m-1" in shown.stdout
    assert "the bindings as they are now could not be read: " in shown.stderr


KEPT = event("kept:copy-1:q_orders", 1.1, "splitting", "kept", "stored", message_id="copy-1", source="q_orders",
             object="kept/q_orders/2026-11-20/12/1795262400000-a.json")  # fmt: skip


@pytest.fixture
def kept(trial: Trial) -> Trial:
    """Return a stage that keeps a message of the way, whose queue is split."""
    s3, orders = boto3.client("s3"), {"queue_id": "orders", "original": "q_orders"}
    s3.create_bucket(Bucket="lake")
    messages = [Message.parse({"MessageId": name, "Body": f"body of {name}"}) for name in ("copy-0", "copy-1")]
    text = kept_batch(QueueName("q_orders"), messages, at=START).text
    s3.put_object(Bucket="lake", Key=KEPT.labels["object"], Body=text.encode())
    verdicts = [
        {"session": "ann", "mode": "steal", "matches": False, "outcome": "no match", "reason": "tenant: is not '^x'"},
        {"session": "bob", "mode": "mirror", "matches": True, "outcome": "match", "reason": "jq: true"},
    ]
    trial.stage.replies["status"] = lambda _: [{"target": "lambda/a", "queues": [orders]}]
    trial.stage.replies["explain"] = lambda _: {"decisions": [{"message": 0, "verdicts": verdicts}]}
    trial.add(*WAY, KEPT)
    return trial


def test_filters_that_took_or_refused_a_kept_message_are_evaluated_as_they_are_now(kept: Trial):
    shown = kept.run("m-1")

    assert lines(shown)[-3:] == [
        "filters of q_orders as they are now, on the kept message copy-1",
        "  no match  ann (steal)  tenant: is not '^x'",
        "  match     bob (mirror)  jq: true",
    ]
    (asked,) = [one for one in kept.stage.asked if one["command"] == "explain"]
    assert (asked["target"], asked["queue_id"]) == ("lambda/a", "orders")
    assert [one["Body"] for one in asked["messages"]] == ["body of copy-1"]
    document = json.loads(kept.run("m-1", "--json").stdout)
    assert [(one["session"], one["matches"]) for one in document["filters_now"]] == [("ann", False), ("bob", True)]


def test_filters_are_evaluated_only_where_they_can_be(kept: Trial):
    assert "filters of" not in kept.run("m-1", "--no-filters").stdout

    boto3.client("s3").delete_object(Bucket="lake", Key=KEPT.labels["object"])
    assert "filters of" not in kept.run("m-1").stdout

    kept.stage.replies["status"] = lambda _: []
    assert "filters of" not in kept.run("m-1").stdout

    def refuse(_command: Any) -> object:
        raise Refusal("not yours")

    kept.stage.replies["status"] = refuse
    assert "the filters as they are now could not be evaluated: " in kept.run("m-1").stderr


def test_a_trace_that_is_too_long_says_so(trial: Trial):
    copies = [
        event(f"routed:m-1:q{number}", 1, "exchange", "routed", "delivered", message_id="m-1", copy=f"k-{number}",
              source="xs", destination=f"q{number}")
        for number in range(MAXIMUM_IDS + 1)
    ]  # fmt: skip
    trial.add(*copies)

    shown = trial.run("m-1")

    assert "more linked events than one trace reads" in shown.stderr
    assert sum("a copy to q" in line for line in lines(shown)) == SHOWN
    assert f"and {len(copies) - SHOWN} more like these" in shown.stdout
    assert f"and {len(copies) - SHOWN} more places" in shown.stdout


def test_many_bindings_are_counted(trial: Trial):
    BINDINGS_OF = [{"exchange": "xs_orders", "queue": f"q_{n}", "pattern": ""} for n in range(SHOWN + 3)]  # noqa: N806
    trial.stage.replies["bindings"] = lambda _: BINDINGS_OF
    trial.add(*WAY)

    assert "  and 3 more: `signalbox bindings xs_orders`" in trial.run("m-1").stdout


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.25, "+250 ms"), (59, "+59.0 s"), (61, "+1m 1s"), (2 * 3600 + 180, "+2h 3m"), (-1, "-1.0 s")],
)
def test_the_time_since_the_start_is_short(seconds, text):
    first = event("e1", 0, "exchange", "unrouted", "dropped", message_id="m", source="x", topic="t")
    (story,) = stories([first])
    later = replace(
        story, steps=(story.steps[0], replace(story.steps[0], at=first.occurred_at + timedelta(seconds=seconds)))
    )

    assert any(f" {text}  " in line for line in story_lines(later))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit_a_terminal_and_ids_are_not_broken(width):
    (story,) = stories(WAY)

    shown = list(story_lines(story, width=width))

    assert max(map(len, shown)) <= width
    assert "".join("".join(shown).split()) == "".join("".join(story_lines(story)).split())
    assert all(any(name in line for line in shown) for name in ("copy-1", "copy-2", "copy-3", "deployed-orders"))


def test_the_longest_name_of_a_capability_is_apart_from_the_step():
    (story,) = stories([event("o", 0, "rendezvous", "offer", "parked", message_id="c", source="sqs")])

    assert any("  rendezvous  offer of a client by sqs" in line for line in story_lines(story))


def test_an_event_of_no_message_is_shown_without_a_place(trial: Trial):
    trial.add(event("declared:x", 0, "exchange", "declared", "binding", source="x", destination="q"))

    assert "  unknown: no event says more" in trial.run("declared:x", "--no-bindings").stdout
