"""The command `signalbox subscribe`."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import boto3
import pytest
from typer.testing import CliRunner, Result

from signalbox.cli.main import app
from signalbox.cli.sarracenia.result_printer import ResultPrinter
from signalbox.cli.sarracenia.subscribe import run_until_signal
from signalbox.cli.shared.signals import Ending
from signalbox.clients.exchange.consumer import Consumer
from signalbox.clients.sarracenia.file_subscription import file_action
from signalbox.clients.sarracenia.message_loop import MessageLoop
from signalbox.clients.sarracenia.subscriber import AnnouncedMessage, FailedMessage, MessageOutcome, Subscriber
from signalbox.clients.sarracenia.subscriber_store import StoreUnavailable, SubscriberStore, open_store
from signalbox.errors import RejectedError, UnavailableError
from signalbox.exchange.control.errors import NotFound
from signalbox.exchange.model.records import ResourceKind, ResourceRef
from signalbox.sarracenia.subscription.filters import FileFilter
from signalbox.sarracenia.subscription.limits import Limits
from tests.cli.sarracenia.stage import FilesStage, files_stage
from tests.fakes.aws import aws  # noqa: F401 - a fixture
from tests.unit.clients.sarracenia.web import Web, serving

QUEUE = "q_alice.subscribe.files"
MOMENT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)


@pytest.fixture
def stage(aws: None) -> Iterator[FilesStage]:  # noqa: F811
    with files_stage() as stage:
        stage.queue_url(QUEUE)
        yield stage


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def subscribe(*options: str) -> Result:
    command = ["subscribe", "--queue", QUEUE, "--aws", *options]
    return CliRunner().invoke(app, command, catch_exceptions=False)


def announced(web: Web, root: Path, *options: str) -> list[dict]:
    """Return the messages that announce a server's files."""
    for name, content in web.files.items():
        path = root / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else b"hello")
    paths = [str(root / "source" / name) for name in web.files]
    where = ["--base-url", web.url, "--base-dir", str(root / "source"), "--exchange", "xs_alice"]
    result = CliRunner().invoke(app, ["post", *paths, *where, "--dry-run", "--json", *options], catch_exceptions=False)
    return [json.loads(line) for line in result.stdout.splitlines()]


def outcomes(result: Result) -> list[tuple[str, str]]:
    return [(one["path"], one["outcome"]) for one in map(json.loads, result.stdout.splitlines())]


def test_a_queue_is_declared_and_bound_by_each_subtopic(stage, folder):
    with serving({"a/f": b"hello"}) as web:
        stage.deliver(QUEUE, *announced(web, folder))
    subtopics = ["--subtopic", "a.#", "--subtopic", "b.*"]

    result = subscribe("--exchange", "xs_alice", *subtopics, "--expires", "5m", "--prefetch", "7", "--count", "1")

    assert stage.asked[:4] == [
        {"command": "exchanges"},
        {"command": "declare_queue", "queue": QUEUE, "expires_seconds": 300, "prefetch": 7},
        {"command": "bind", "exchange": "xs_alice", "queue": QUEUE, "pattern": "v03.a.#"},
        {"command": "bind", "exchange": "xs_alice", "queue": QUEUE, "pattern": "v03.b.*"},
    ]
    assert f"· {QUEUE} gets what is announced to xs_alice as v03.a.#" in result.stderr


def test_without_a_subtopic_everything_is_bound(stage, folder):
    with pytest.raises(RejectedError, match="there is no exchange 'xpublic'"):
        subscribe("--exchange", "xpublic", "--topic-prefix", "v02.post", "--expires", "never")

    assert stage.asked[1:3] == [
        {"command": "declare_queue", "queue": QUEUE, "expires_seconds": 0},
        {"command": "bind", "exchange": "xpublic", "queue": QUEUE, "pattern": "v02.post.#"},
    ]


def test_a_mistyped_exchange_declares_no_queue(stage, folder):
    with pytest.raises(NotFound, match=r"no exchange 'xs_alcie' that you may read; did you mean 'xs_alice'\?"):
        subscribe("--exchange", "xs_alcie")

    assert stage.asked == [{"command": "exchanges"}]


@pytest.mark.parametrize("form", ["v02", "v03"])
def test_announced_files_are_printed(form, stage, folder):
    with serving({"a/f": b"hello", "b/g": b"x"}) as web:
        messages = announced(web, folder, "--format", form)
        stage.deliver(QUEUE, *messages)

    result = subscribe("--count", "2")

    assert sorted(result.stdout.splitlines()) == [f"accepted  {web.url} a/f", f"accepted  {web.url} b/g"]
    assert "ended: 2 accepted" in result.stderr
    assert stage.left(QUEUE) == 0


def test_filter_options_apply_in_the_order_of_the_command_line(stage, folder):
    files = {"a/x.gif": b"gif", "a/x.txt": b"text", "b/y.txt": b"other", "c/z": b"rest"}
    with serving(files) as web:
        stage.deliver(QUEUE, *announced(web, folder))
        lines = ["--reject", r".*\.gif", "--directory", "texts", "--accept=.*/b/", "--directory", "others"]
        result = subscribe("--download", "here", *lines, "--accept", r".*\.txt$", "--count", "4", "--json")

    assert sorted(outcomes(result)) == [
        ("a/x.gif", "rejected"),
        ("a/x.txt", "downloaded"),
        ("b/y.txt", "downloaded"),
        ("c/z", "downloaded"),
    ]
    assert (folder / "here" / "texts" / "b" / "y.txt").read_bytes() == b"other"
    assert (folder / "here" / "others" / "a" / "x.txt").read_bytes() == b"text"
    assert (folder / "here" / "others" / "c" / "z").read_bytes() == b"rest"


def test_unmatched_files_can_be_rejected(stage, folder):
    with serving({"a/f": b"hello"}) as web:
        stage.deliver(QUEUE, *announced(web, folder))

    assert outcomes(subscribe("--accept", "x", "--reject-unmatched", "--count", "1", "--json")) == [("a/f", "rejected")]


def test_invalid_filters_are_refused_before_the_stage_is_called(stage, folder):
    with pytest.raises(RejectedError, match=r"^--accept: '\[': unterminated character set at position 1"):
        subscribe("--reject", "x", "--accept", "[", "--exchange", "xs_alice")

    assert stage.asked == []


def test_duplicates_are_dropped_across_instances(stage, folder):
    with serving({"a/f": b"hello"}) as web:
        messages = announced(web, folder)
    options = ["--duplicates", "5m", "--count", "1", "--json"]

    found = []
    for _ in range(2):
        stage.deliver(QUEUE, *messages)
        found += outcomes(subscribe(*options))

    assert found == [("a/f", "accepted"), ("a/f", "duplicate")]


def test_instances_share_the_messages_of_a_queue(stage, folder):
    with serving({"a/f": b"hello", "b/g": b"x"}) as web:
        stage.deliver(QUEUE, *announced(web, folder))

    found = [outcomes(subscribe("--count", "1", "--json")) for _ in range(2)]

    assert sorted(path for one in found for path, _ in one) == ["a/f", "b/g"]
    assert stage.left(QUEUE) == 0


@pytest.mark.parametrize("old", [["--message-age", "1s"], ["--file-age", "1s"]])
def test_old_messages_and_files_are_dropped(old, stage, folder):
    with serving({"a/f": b"hello"}) as web:
        (message,) = announced(web, folder)
    body = json.loads(message["body"]) | {"pubTime": "20231114T221320", "mtime": "20231114T221320"}
    stage.deliver(QUEUE, {**message, "body": json.dumps(body)})

    assert outcomes(subscribe(*old, "--count", "1", "--json"))[0][1] in ("message too old", "file too old")


def test_failed_downloads_are_retried_until_they_succeed(stage, folder):
    with serving({"a/f": [500, 404, b"hello"]}) as web:
        stage.deliver(QUEUE, *announced(web, folder))
        result = subscribe("--download", ".", "--pause", "0", "--count", "1", "--json")

    assert outcomes(result) == [("a/f", "failed"), ("a/f", "failed"), ("a/f", "downloaded")]
    assert result.exit_code == 0
    assert "ended: 1 downloaded" in result.stderr


def test_a_file_is_given_up_after_the_last_attempt(stage, folder):
    with serving({"a/f": 404}) as web:
        stage.deliver(QUEUE, *announced(web, folder))
        result = subscribe("--download", ".", "--pause", "0", "--attempts", "2", "--count", "1")

    assert result.exit_code == 1
    assert f"· failed  {web.url} a/f  (cannot fetch '{web.url}a/f': HTTP Error 404" in result.stderr
    assert f"· given up  {web.url} a/f  (cannot fetch" in result.stderr
    assert "ended: 1 given up" in result.stderr
    assert stage.left(QUEUE) == 0


def test_an_invalid_message_is_reported_and_acknowledged(stage, folder):
    stage.deliver(QUEUE, {"routing_key": "v03.a", "exchange": "xs_alice", "headers": {}, "body": "{}"})

    result = subscribe("--count", "1")

    assert "· invalid  v03.a  (pubTime: is missing; baseUrl: is missing; relPath: is missing)" in result.stderr
    assert stage.left(QUEUE) == 0


def test_files_are_downloaded_from_s3(stage, folder):
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="files")
    s3.put_object(Bucket="files", Key="pre/a/f", Body=b"hello")
    with serving({"a/f": b"hello"}) as web:
        stage.deliver(QUEUE, *announced(web, folder, "--base-url", "s3://files/pre/"))

    assert outcomes(subscribe("--download", ".", "--count", "1", "--json")) == [("a/f", "downloaded")]
    assert (folder / "a" / "f").read_bytes() == b"hello"


@dataclass
class FakeConsumer:
    """A consumer whose `receive` calls an action of the test."""

    action: object
    waited: list[int] = field(default_factory=list)
    acknowledged: list[object] = field(default_factory=list)

    def receive(self, *, wait_seconds):
        self.waited.append(wait_seconds)
        return self.action()

    def ack(self, *taken):
        self.acknowledged += taken


@contextmanager
def message_loop(
    folder: Path, receive: Callable[[], object], *, action=lambda *_: None, is_live: bool = False
) -> Iterator[tuple[MessageLoop, FakeConsumer, SubscriberStore]]:
    consumer, ending = FakeConsumer(receive), Ending()
    with open_store(folder / "state.sqlite") as store:
        subscriber = Subscriber(action, store, store, FileFilter(), Limits(duplicates_ttl=timedelta(seconds=10)))
        printer = ResultPrinter(as_json=False, is_live=is_live)
        yield MessageLoop(consumer, store, subscriber, printer, ending, now=lambda: MOMENT), consumer, store


def interrupt():
    os.kill(os.getpid(), signal.SIGTERM)
    return []


def test_a_signal_interrupts_the_wait_for_messages(tmp_path, capsys):
    with message_loop(tmp_path, interrupt) as (loop, consumer, _):
        run_until_signal(loop, loop.stop)

    assert consumer.waited == [20]
    assert capsys.readouterr().err == "· ended: nothing yet\n"


@pytest.mark.parametrize(("seconds", "waited"), [(7, 7), (0.2, 1), (300, 20)])
def test_the_wait_ends_when_the_next_retry_is_due(seconds, waited, tmp_path, capsys):
    with message_loop(tmp_path, interrupt) as (loop, consumer, store):
        store.add(FailedMessage(AnnouncedMessage("{}", {}, "x", "k"), 1, MOMENT + timedelta(seconds=seconds), "no"))
        run_until_signal(loop, loop.stop)

    assert consumer.waited == [waited]
    assert capsys.readouterr().err == "· ended: nothing yet; 1 to be tried again\n"


def test_old_duplicate_keys_are_deleted(tmp_path):
    with message_loop(tmp_path, interrupt) as (loop, _, store):
        store.record("old", now=MOMENT - timedelta(seconds=11))
        store.record("new", now=MOMENT - timedelta(seconds=9))
        run_until_signal(loop, loop.stop)

        assert (store.last_seen("old") is None, store.last_seen("new") is None) == (True, False)


def test_a_message_that_could_not_be_stored_is_not_acknowledged(tmp_path, stage):
    with serving({"a/f": b"hello", "b/g": b"hello"}) as web:
        stage.deliver(QUEUE, *announced(web, tmp_path))
    handled = []

    def failing_the_second_time(announced, _accepted):
        handled.append(announced.path)
        if len(handled) == 2:
            raise StoreUnavailable("disk full") from None

    with message_loop(tmp_path, taken_from(stage), action=failing_the_second_time) as (loop, consumer, store):
        store.connection.execute("CREATE TRIGGER full BEFORE INSERT ON failed BEGIN SELECT RAISE(ABORT, 'full'); END")
        with pytest.raises(UnavailableError, match="cannot store the subscription's state: full"):
            run_until_signal(loop, loop.stop)

    assert [taken.delivered.key for taken in consumer.acknowledged] == ["v03.a"]


def taken_from(stage: FilesStage):
    consumer = Consumer(boto3.client("sqs"), ResourceRef(ResourceKind.QUEUE, QUEUE), stage.queue_url(QUEUE))
    return lambda: sorted(consumer.receive(wait_seconds=0), key=lambda taken: taken.delivered.key)


def test_incomplete_files_of_all_directories_are_deleted(tmp_path):
    file_filter = FileFilter.parse([("directory", "d"), ("accept", "x"), ("directory", "e")], lambda _: None)
    for name in ("d", "e", ""):
        own = tmp_path / name / ".signalbox"
        own.mkdir(parents=True)
        (own / "left").touch()
        os.utime(own / "left", (0, 0))

    file_action(tmp_path, file_filter, boto3.Session)

    assert list(tmp_path.rglob("left")) == []


def test_unprintable_characters_are_printed_escaped(capsys):
    announcement = json.dumps({"pubTime": "20231114T221320", "baseUrl": "https://e/", "relPath": "\udce9"})
    result = Subscriber(lambda *_: None, None, None).handle(AnnouncedMessage(announcement, {}, "x", "k"), now=MOMENT)

    ResultPrinter(as_json=False).result(result)

    assert result.outcome == MessageOutcome.ACCEPTED
    assert capsys.readouterr().out == "accepted  https://e/ \\udce9\n"


def test_a_terminal_shows_a_status_line(tmp_path, capsys):
    with message_loop(tmp_path, interrupt, is_live=True) as (loop, _, _):
        run_until_signal(loop, loop.stop)

    erase = "\r\x1b[2K"
    assert capsys.readouterr().err == f"{erase}idle: nothing yet{erase}· ended: nothing yet\n"
