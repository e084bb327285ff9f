"""A fake stage for CLI tests: moto, and a thread that replies to commands of control queues."""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
from typer.testing import CliRunner, Result

from signalbox.cli.main import app
from tests.adapters.shared.stubs import URLS
from tests.patience import wait_for

Reply = Callable[[Mapping[str, Any]], object]
LONG_POLL_SECONDS, END = 20, "end"


class Refusal(Exception):
    """Raised by a test's reply function to send an error reply."""

    def __init__(self, text: str, code: str = "rejected") -> None:
        super().__init__(text)
        self.text, self.code = text, code


@dataclass
class FakeStage:
    """A stage that replies to commands with a test's functions, and records the commands and their queues.

    A thread waits at each control queue: an empty receive costs more in moto than a second of waiting.
    """

    outputs: Mapping[str, str]
    replies: dict[str, Reply] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)
    asked_in: list[str] = field(default_factory=list)

    @property
    def commands(self) -> list[str]:
        return [one["command"] for one in self.asked]

    def serve(self, url: str) -> None:
        """Reply to the commands of a control queue until it has the message `END`."""
        sqs, messages = boto3.client("sqs"), list[Any]()
        while not any(message["Body"] == END for message in messages):
            received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=1, WaitTimeSeconds=LONG_POLL_SECONDS)
            messages = received.get("Messages", [])
            for message in messages:
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                if message["Body"] != END:
                    self._answer(json.loads(message["Body"]), url)

    def _answer(self, command: dict[str, Any], url: str) -> None:
        reply = json.dumps({"id": command["id"], **self._reply(command)})
        self.asked.append(command)
        self.asked_in.append(url.rpartition("/")[2])
        if command.get("reply"):
            boto3.client("sqs").send_message(QueueUrl=reply_queue_url(url), MessageBody=reply)

    def _reply(self, command: Mapping[str, Any]) -> dict[str, object]:
        try:
            return {"ok": True, "result": self.replies[command["command"]](command)}
        except Refusal as refusal:
            return {"ok": False, "error": refusal.text, "code": refusal.code}


@contextmanager
def fake_stage() -> Iterator[FakeStage]:
    """Yield a deployed stage that serves the control queue of splitting; the caller starts moto."""
    outputs = {
        "SplitControlQueueUrl": boto3.client("sqs").create_queue(QueueName="signalbox-split-control")["QueueUrl"],
        "SplitReplyQueueUrl": reply_queue_url(f"{URLS}signalbox-split-control"),
        "TemporaryQueuePrefix": "mirrord-",
        "Settings": json.dumps({"splittable_targets": "lambda/meme-app,lambda/demo-*,ssm/demo/queue,ecs/demo/app"}),
        "HistoryBucket": "lake",
        "HistoryDatabase": "signalbox_lake",
        "HistoryTable": "events_raw",
    }
    with serving(outputs, [outputs["SplitControlQueueUrl"]]) as stage:
        yield stage


@contextmanager
def serving(outputs: Mapping[str, str], control_queues: Sequence[str]) -> Iterator[FakeStage]:
    """Yield a deployed stage with these outputs that serves these control queues."""
    all_outputs = {
        "RendezvousUrl": "https://rendezvous.example/",
        "Capabilities": "rendezvous,splitting,exchange,live,history",
        **outputs,
    }
    template = {
        "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
        "Outputs": {name: {"Value": value} for name, value in all_outputs.items()},
    }
    boto3.client("cloudformation").create_stack(StackName="signalbox", TemplateBody=json.dumps(template))
    for url in control_queues:
        boto3.client("sqs").create_queue(QueueName=reply_queue_url(url).rpartition("/")[2])
    stage = FakeStage(outputs)
    threads = [threading.Thread(target=stage.serve, args=[url]) for url in control_queues]
    for thread in threads:
        thread.start()
    try:
        yield stage
    finally:
        for url in control_queues:
            boto3.client("sqs").send_message(QueueUrl=url, MessageBody=END)
        for thread in threads:
            thread.join()


def reply_queue_url(control_queue_url: str) -> str:
    """Return the URL of the reply queue of those who may send to a control queue."""
    return control_queue_url.replace("-control", "-reply")


def waiting_replies() -> int:
    """Return the number of replies that no client has fetched."""
    url, number = f"{URLS}signalbox-split-reply", "ApproximateNumberOfMessages"
    return int(boto3.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=[number])["Attributes"][number])


def split(*arguments: str, **options: Any) -> Result:
    """Run a command of `signalbox split` against the fake stage."""
    own, separator, command = _parted(arguments)
    return CliRunner().invoke(app, ["split", *own, "--aws", *separator, *command], catch_exceptions=False, **options)


def printed(text: str) -> bool:
    """Return whether the command that runs has printed this to standard error."""
    written = getattr(sys.stderr.buffer, "getvalue", bytes)()  # click's runner collects it there
    return text in written.decode()


@contextmanager
def interrupting(condition: Callable[[], object], number: int) -> Iterator[None]:
    """Send a signal to the command that runs once a condition holds."""
    failed: list[AssertionError] = []

    def watch() -> None:
        try:
            wait_for(condition, "what the test waits for")
        except AssertionError as error:
            failed.append(error)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    assert not failed, failed


def _parted(arguments: tuple[str, ...]) -> tuple[list[str], list[str], list[str]]:
    words = list(arguments)
    if "--" not in words:
        return words, [], []
    return words[: words.index("--")], ["--"], words[words.index("--") + 1 :]


def cells(text: str) -> list[list[str]]:
    """Return the cells of a printed table."""
    return [line.split() for line in text.splitlines()]
