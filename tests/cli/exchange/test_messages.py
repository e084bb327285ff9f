"""`signalbox publish` and `consume` against a stage."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from signalbox.errors import RejectedError
from signalbox.exchange.control.errors import NotFound
from signalbox.exchange.messages.properties import InvalidPublication
from tests.cli.exchange.stage import PLACE, exchange_stage, queue, signalbox
from tests.cli.shared.stage import FakeStage, Refusal
from tests.fakes.aws import aws  # noqa: F401 - a fixture

QUEUE = "q_alice"
DEADLINE_SECONDS = 30
SENT_AT = 1_700_000_000_000
FAR = 9_000_000_000_000


@pytest.fixture
def stage(aws) -> Iterator[FakeStage]:  # noqa: F811
    with exchange_stage() as stage:
        queue("xpublic")
        queue(QUEUE)
        yield stage


def waiting(name: str) -> list[dict[str, Any]]:
    """Return the messages of a queue without deleting them."""
    sqs, found = boto3.client("sqs"), []
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    request = {"QueueUrl": url, "MaxNumberOfMessages": 10, "MessageAttributeNames": ["All"], "VisibilityTimeout": 600}
    while messages := sqs.receive_message(**request).get("Messages", ()):
        found += messages
    for one in found:
        sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"], VisibilityTimeout=0)
    return found


def deliver(body: str, **more: str) -> None:
    attributes = {
        "topic": ("String", "v03.a"),
        "exchange": ("String", "xpublic"),
        "message_id": ("String", f"id of {body}"),
        "publisher": ("String", "bob"),
        "published_at": ("Number", str(SENT_AT)),
        **{name: ("Number" if text.isdigit() else "String", text) for name, text in more.items()},
    }
    sqs = boto3.client("sqs")
    sqs.send_message(
        QueueUrl=sqs.get_queue_url(QueueName=QUEUE)["QueueUrl"],
        MessageBody=body,
        MessageAttributes={n: {"DataType": kind, "StringValue": text} for n, (kind, text) in attributes.items()},
    )


def bodies(name: str) -> list[str]:
    return [one["Body"] for one in waiting(name)]


def test_publishing_prints_the_messages_id(stage):
    result = signalbox("publish", "xpublic", "v03.a", "hello", "--header", "sum=z", "--header", "empty=")

    (message,) = waiting("xpublic")
    assert result.stdout == f"{message['MessageId']}\n"
    assert message["Body"] == "hello"
    assert message["MessageAttributes"]["topic"]["StringValue"] == "v03.a"
    assert json.loads(message["MessageAttributes"]["headers"]["StringValue"]) == {"sum": "z", "empty": ""}
    assert stage.asked == []


def test_for_programs_a_line_has_what_was_published(stage):
    document = json.loads(signalbox("publish", "xpublic", "", "hello", "--json").stdout)

    assert document == {"exchange": "xpublic", "routing_key": "", "message_id": waiting("xpublic")[0]["MessageId"]}


def test_a_body_may_come_from_a_file_or_from_standard_input_as_it_is(stage, tmp_path):
    (tmp_path / "body").write_text("in a file\n")

    signalbox("publish", "xpublic", "a", "--file", str(tmp_path / "body"))
    signalbox("publish", "xpublic", "a", "--file", "-", input="by name\n")
    signalbox("publish", "xpublic", "a", input="on its own\n")

    assert sorted(bodies("xpublic")) == ["by name\n", "in a file\n", "on its own\n"]


def test_each_line_may_be_a_message(stage):
    result = signalbox("publish", "xpublic", "a", "--lines", input="one\n\ntwo\r\nthree")

    assert sorted(bodies("xpublic")) == ["one", "three", "two"]
    assert len(result.stdout.splitlines()) == 3
    assert result.stderr == f"· 3 published to xpublic\n{PLACE}"


def test_lines_of_a_file_and_more_than_one_call_takes(stage, tmp_path):
    (tmp_path / "lines").write_text("".join(f"{number}\n" for number in range(25)))

    result = signalbox("publish", "xpublic", "a", "--lines", "--file", str(tmp_path / "lines"), "--json")

    assert len({json.loads(line)["message_id"] for line in result.stdout.splitlines()}) == 25
    assert len(bodies("xpublic")) == 25


def test_a_line_that_cannot_be_published_is_named_and_the_others_are_published(stage):
    result = signalbox("publish", "xpublic", "a", "--lines", input="one\n\n\x00\ntwo\n")

    assert result.exit_code == 2
    assert sorted(bodies("xpublic")) == ["one", "two"]
    assert result.stderr.startswith("error: line 3: body: has characters that SQS does not allow")
    assert result.stderr.endswith("· 2 published to xpublic, 1 not\n")


def test_a_line_that_is_no_text_is_named(stage):
    with pytest.raises(RejectedError, match=r"^line 2 is not UTF-8"):
        signalbox("publish", "xpublic", "a", "--lines", input=b"one\n\xff\n")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("body", "--file", "x"), "the body is given twice"),
        (("body", "--lines"), "the body is given twice"),
        (("--lines", "--deduplication-id", "x"), "is for one message"),
        (("body", "--header", "x"), "header 'x' is not NAME=TEXT"),
        (("body", "--header", "=x"), "header '=x' is not NAME=TEXT"),
        (("--lines", "--file", "none"), "cannot read 'none'"),
        (("--file", "none"), "cannot read 'none'"),
    ],
    ids=["two bodies", "body and lines", "one id for all", "no value", "no name", "no file of lines", "no file"],
)
def test_conflicting_options_are_refused(stage, arguments, text):
    with pytest.raises(RejectedError, match=text):
        signalbox("publish", "xpublic", "a", *arguments)
    assert bodies("xpublic") == []


def test_a_message_that_cannot_be_published_is_refused_with_the_reason(stage):
    with pytest.raises(InvalidPublication, match="256 bytes of UTF-8"):
        signalbox("publish", "xpublic", "k" * 256, "hello")


@pytest.mark.parametrize(
    ("key", "exchange", "outcome"),
    [
        ("v03.a.b", {}, None),
        ("v04.a", {}, "no binding of xpublic that you may read matches 'v04.a': a message without one is dropped"),
        ("v04.a", {"alternate": "xrest"}, "a message without one goes to xrest"),
        ("v04.a", {"live": {"retention": {}}}, None),
    ],
    ids=["bound", "not bound", "alternate", "live"],
)
def test_at_a_terminal_a_key_without_binding_is_noted(stage, monkeypatch, key, exchange, outcome):
    monkeypatch.setattr("signalbox.cli.exchange.publish._is_watched", lambda: True)
    stage.replies["exchanges"] = lambda _: [{"exchange": "xpublic", "alternate": None, **exchange}]

    result = signalbox("publish", "xpublic", key, "hello")

    assert result.exit_code == 0
    assert ("no binding" in result.stderr) is (outcome is not None)
    assert (outcome or "") in result.stderr


def test_a_note_that_cannot_be_made_is_no_error(stage, monkeypatch):
    monkeypatch.setattr("signalbox.cli.exchange.publish._is_watched", lambda: True)

    def refuse(_command: object) -> object:
        raise Refusal("not now")

    stage.replies["bindings"] = refuse

    assert signalbox("publish", "xpublic", "a", "hello").exit_code == 0


def test_a_mistyped_exchange_is_answered_with_the_nearest(stage):
    with pytest.raises(NotFound, match=r"'xpublc' does not exist: declare it first; did you mean 'xpublic'\?"):
        signalbox("publish", "xpublc", "a", "hello")


def test_a_missing_exchange_is_named(stage):
    with pytest.raises(NotFound, match="exchange 'xs_none' does not exist: declare it first"):
        signalbox("publish", "xs_none", "a", "hello")


def test_without_a_body_at_a_terminal_the_command_fails_at_once(stage, monkeypatch):
    monkeypatch.setattr("signalbox.cli.shared.confirmation.is_terminal", lambda: True)

    with pytest.raises(RejectedError, match="the body is missing: give it as an argument"):
        signalbox("publish", "xpublic", "a")


def test_messages_are_printed_and_taken_out(stage):
    deliver("one", sequence="7", source="weather")
    deliver("two")

    result = signalbox("consume", QUEUE, "--no-follow")

    assert "v03.a  id of one  by bob  via xpublic  #7  source=weather\n  one\n" in result.stdout
    assert "v03.a  id of two  by bob  via xpublic\n  two\n" in result.stdout
    assert bodies(QUEUE) == []
    assert [one["command"] for one in stage.asked] == ["consuming"]


def test_an_empty_queue_is_stated(stage):
    result = signalbox("consume", QUEUE, "--no-follow")

    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"· messages of {QUEUE} {PLACE.removeprefix('· ')}· no messages in {QUEUE}\n"


def test_for_programs_a_message_is_a_line(stage):
    deliver("one", expires_at=str(FAR))

    assert json.loads(signalbox("consume", QUEUE, "--no-follow", "--json").stdout) == {
        "routing_key": "v03.a",
        "exchange": "xpublic",
        "message_id": "id of one",
        "publisher": "bob",
        "published_at": "2023-11-14T22:13:20+00:00",
        "sequence": None,
        "expires_at": "2255-03-14T16:00:00+00:00",
        "headers": {},
        "body": "one",
    }


def test_messages_after_the_maximum_stay_in_the_queue(stage):
    for body in "abcde":
        deliver(body)

    printed = signalbox("consume", QUEUE, "--max", "3", "--prefetch", "2").stdout

    assert len(printed.splitlines()) == 6
    assert len(bodies(QUEUE)) == 2


def test_to_look_takes_nothing_out_and_shows_each_message_once(stage):
    for number in range(30):
        deliver(str(number))

    printed = signalbox("consume", QUEUE, "--no-ack", "--no-follow", "--json").stdout

    assert {json.loads(line)["body"] for line in printed.splitlines()} == {str(number) for number in range(30)}
    assert len(printed.splitlines()) == 30
    assert len(bodies(QUEUE)) == 30


def test_reading_without_acknowledging_ends_at_the_maximum(stage):
    for number in range(15):
        deliver(str(number))

    assert len(signalbox("consume", QUEUE, "--no-ack", "--max", "12", "--json").stdout.splitlines()) == 12
    assert len(bodies(QUEUE)) == 15


def test_dropped_and_unreadable_messages_are_reported(stage):
    deliver("late", expires_at="1")
    sqs = boto3.client("sqs")
    sqs.send_message(QueueUrl=sqs.get_queue_url(QueueName=QUEUE)["QueueUrl"], MessageBody="by hand")

    result = signalbox("consume", QUEUE, "--no-follow")

    assert result.stdout == ""
    assert "1 dropped because they exceeded the queue's message TTL" in result.stderr
    assert "1 left in the queue because no exchange sent them" in result.stderr


def test_a_consumer_that_waits_ends_with_a_signal(stage):
    deliver("one")

    def end() -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while _messages(QUEUE) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    interruption = threading.Thread(target=end)
    interruption.start()

    result = signalbox("consume", QUEUE)

    interruption.join()
    assert result.exit_code == 0
    assert "  one\n" in result.stdout


def _messages(name: str) -> int:
    sqs, counts = boto3.client("sqs"), ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
    return sum(map(int, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=counts)["Attributes"].values()))


def test_a_missing_queue_is_named(stage):
    with pytest.raises(NotFound, match="queue 'q_none' does not exist"):
        signalbox("consume", "q_none", "--no-follow")


def test_unprinted_messages_stay_in_the_queue(stage, monkeypatch):
    for body in "abc":
        deliver(body)
    printed = []

    def broken(text: str = "") -> None:
        if printed:
            raise BrokenPipeError
        printed.append(json.loads(text)["body"])

    monkeypatch.setattr("signalbox.cli.exchange.consume.print_line", broken)

    with pytest.raises(BrokenPipeError):
        signalbox("consume", QUEUE, "--json")
    assert sorted(bodies(QUEUE) + printed) == ["a", "b", "c"]
