"""A folder with a handler, its session's queue, and a fake stage."""

import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.cli.shared.stage import FakeStage, fake_stage, interrupting, split

TARGET = ("--target", "ecs/demo/worker")
RECORDS = """
import json, os, pathlib

def note(**fields):
    with open("seen.jsonl", "a") as seen:
        seen.write(json.dumps(fields) + "\\n")
"""


@dataclass
class Desk:
    """A folder with a handler, the queue of its session, and what the handler noted."""

    folder: Path
    url: str
    stage: FakeStage

    def write(self, code: str, name: str = "app.py") -> None:
        (self.folder / name).write_text(RECORDS + code)

    def send(self, *bodies: str, **more: Any) -> None:
        for body in bodies:
            boto3.client("sqs").send_message(QueueUrl=self.url, MessageBody=body, **more)

    def seen(self) -> list[Any]:
        path = self.folder / "seen.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def left(self) -> tuple[int, int]:
        """Return how many messages are visible, and how many are in flight."""
        found = boto3.client("sqs").get_queue_attributes(QueueUrl=self.url, AttributeNames=["All"])["Attributes"]
        return int(found["ApproximateNumberOfMessages"]), int(found["ApproximateNumberOfMessagesNotVisible"])

    def run(self, *options: str, until: Callable[[], object], then: int = signal.SIGINT) -> Any:
        """Run a handler until a condition holds, then interrupt it as Ctrl-C does."""
        with interrupting(until, then):
            return split("run", "--config", "mirrord.json", *options)


@pytest.fixture
def desk(aws, tmp_path, monkeypatch) -> Iterator[Desk]:
    monkeypatch.chdir(tmp_path)
    entry = {"queue_type": "SQS", "message_filter": {"tenant": "^ann$"}}
    (tmp_path / "mirrord.json").write_text(json.dumps({"feature": {"split_queues": {"memes": entry}}}))
    with fake_stage() as stage:
        yield desk_of(tmp_path, stage, "mirrord-1", VisibilityTimeout="30")


def desk_of(folder: Path, stage: FakeStage, name: str, **attributes: str) -> Desk:
    url = boto3.client("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    original = "memes.fifo" if name.endswith(".fifo") else "memes"
    session = {
        "session": "ann-1",
        "phase": "ready",
        "queues": [{"queue_id": "memes", "original": original, "temporary": name, "url": url}],
        "environment": {"MEME_QUEUE": name},
        "notes": [],
    }
    stage.replies |= {
        "start": lambda _: session,
        "heartbeat": lambda _: session,
        "stop": lambda _: {**session, "phase": "ending"},
    }
    return Desk(folder, url, stage)
