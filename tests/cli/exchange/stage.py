"""A fake stage for the commands: its control plane declares, but nothing is routed."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import boto3
from typer.testing import CliRunner, Result

from signalbox.cli.main import app
from tests.cli.shared.stage import FakeStage, Reply, serving

CONTROL = "signalbox-exchange-control"
PLACE = "· in stage signalbox in us-east-1\n"  # what a command that changes something reports
DECLARED_AT = "2026-11-21T12:00:00+00:00"


@contextmanager
def exchange_stage() -> Iterator[FakeStage]:
    """Yield a deployed stage with the user alice; the caller fakes AWS."""
    sqs = boto3.client("sqs")
    urls = [sqs.create_queue(QueueName=name)["QueueUrl"] for name in (CONTROL, f"{CONTROL}-alice")]
    outputs = {"ExchangeControlQueueUrl": urls[0], "ExchangePrefix": "", "ExchangeTable": "Exchanges"}
    outputs |= {"DeadLetterQueueUrl": urls[0].replace(CONTROL, "dead-offers")}
    outputs |= {"HistoryBucket": "lake", "HistoryDatabase": "signalbox_lake", "HistoryTable": "events_raw"}
    with serving(outputs, urls) as stage:
        stage.replies |= exchange_replies()
        yield stage


def exchange_replies() -> dict[str, Reply]:
    """Return the replies of the control plane."""
    return {
        "declare_exchange": _exchange,
        "declare_queue": _queue,
        "consuming": lambda command: {"queue": command["queue"], "prefetch": 25, "expires_seconds": None},
        "exchanges": lambda command: [
            _exchange({"exchange": name}) for name in ("xpublic", "xs_alice") if command.get("exchange") in (None, name)
        ],
        "queues": lambda _: [_queue({"queue": name}) for name in ("q_alice", "q_bob")],
        "bindings": lambda _: [{"exchange": "xpublic", "queue": "q_alice", "pattern": "v03.#"}],
        "whoami": lambda _: {"exchange_prefix": ""},
        "bind": lambda command: {**_binding(command), "bound": True},
        "unbind": lambda command: {**_binding(command), "unbound": command["pattern"] == "a.#"},
    }


def signalbox(*arguments: str, **options: Any) -> Result:
    """Run a command against the fake stage."""
    return CliRunner().invoke(app, [*arguments, "--aws"], catch_exceptions=False, **options)


def queue(name: str) -> str:
    """Create an SQS queue and return its URL."""
    return boto3.client("sqs").create_queue(QueueName=name)["QueueUrl"]


def _exchange(command: Mapping[str, Any]) -> dict[str, object]:
    name = command["exchange"]
    return {
        "exchange": name,
        "ordered": name.endswith(".fifo"),
        "alternate": command.get("alternate"),
        "created_by": None,
        "created_at": DECLARED_AT,
        "sqs_name": name,
        "url": f"https://sqs/1/{name}",
        "connected": name != "xs_new",
    }


def _queue(command: Mapping[str, Any]) -> dict[str, object]:
    return {
        "queue": command["queue"],
        "sqs_name": command["queue"].replace(".", "_"),
        "url": "https://sqs/1/q",
        "owner": "alice",
        "expires_seconds": command.get("expires_seconds"),
        "message_ttl_seconds": command.get("message_ttl_seconds"),
        "prefetch": command.get("prefetch", 25),
        "maximum_receives": command.get("maximum_receives", 5),
        "group_by": command.get("group_by", "publisher"),
        "consumed_at": None,
    }


def _binding(command: Mapping[str, Any]) -> dict[str, object]:
    return {name: command[name] for name in ("exchange", "queue", "destination", "pattern") if name in command}
