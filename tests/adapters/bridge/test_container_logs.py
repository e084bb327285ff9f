"""The reader of a container's log, over HTTP, against the stand-in: what it publishes is what the file becomes."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from signalbox.clients.bridge.log_endpoint import LogEndpoint as Client
from signalbox.clients.bridge.log_endpoint import TokenRefused
from signalbox.errors import UnavailableError
from signalbox.live.bridge.log_positions import LogPosition
from signalbox.live.bridge.log_reader import (
    LONGEST_SECONDS,
    READ_BYTES,
    SHORTEST_SECONDS,
    TRIES_AT_END,
    ContainerReader,
    LogAbsent,
    LogPublication,
    LogsUnavailable,
)
from tests.fakes.arvados.http_server import AT_ONCE, QUEUED, Server, serving
from tests.fakes.arvados.log_endpoint import Answer, ContainerLog, LogEndpoint, State, line

REQUEST, CONTAINER = "zzzzz-xvhdp-000000000000001", "zzzzz-dz642-000000000000001"
OWNER, OTHER = "zzzzz-j7d0g-000000000000001", "zzzzz-j7d0g-000000000000002"
TOKEN = "v2/zzzzz-gj3su-000000000000001/secretofthereader"
SECRET = "v2/zzzzz-gj3su-000000000000002/secretofthecontainer"
FILES = {
    "crunch-run.txt": line("crunch-run started") + line(f'container token "{SECRET}/{CONTAINER}"') + line("running"),
    "keepstore.txt": b'{"level":"info","msg":"started"}\n{"n": 1}\n',
    "hoststat.txt": line("cpu 1"),
    "arv-mount.txt": line("ready"),
    "stderr.txt": line("50%\r100%") + line("bad \xff".encode("latin-1").decode("latin-1")),
    "stdout.txt": line("x" * 300_000) + line("é 😀"),
    "node-info.txt": b"Host\n",
    "container.json": b'{\n  "uuid": "' + CONTAINER.encode() + b'"\n}\n',
    "usage_report.html": b"<html>",
}


@dataclass(slots=True)
class Sink:
    """A realm that keeps what it accepts, by topic; `before` may raise instead."""

    taken: dict[str, list[LogPublication]] = field(default_factory=dict)
    fails: list[Exception] = field(default_factory=list)

    def publish_log(self, publication: LogPublication) -> None:
        if self.fails:
            raise self.fails.pop()
        self.taken.setdefault(publication.topic, []).append(publication)

    def text(self, name: str, owner: str = OWNER) -> str:
        found = self.taken.get(f"container.{owner}.{CONTAINER}.log.{name}", [])
        return "".join(one.piece.text for one in found)


@dataclass(slots=True)
class Stage:
    """A container at an endpoint, its reader, and the requests of each poll."""

    server: Server
    log: ContainerLog
    reader: ContainerReader
    sink: Sink
    polled: list[int] = field(default_factory=list)
    at: float = 0.0

    def poll(self, times: int = 1) -> None:
        for _ in range(times):
            before = self.server.endpoint.per_container[CONTAINER]
            self.reader.poll(self.at)
            self.at = self.reader.due_at
            self.polled.append(self.server.endpoint.per_container[CONTAINER] - before)

    def finish(self) -> None:
        self.reader.is_over = True
        while not self.reader.position.is_read:
            self.poll()


@pytest.fixture
def stage() -> Iterator[Stage]:
    endpoint = LogEndpoint({TOKEN: None})
    log = endpoint.add(ContainerLog(REQUEST, CONTAINER, State.RUNNING))
    with serving(endpoint) as server:
        sink = Sink()
        yield Stage(server, log, reader(server, sink), sink)


def reader(server: Server, sink: Sink, *owners: str) -> ContainerReader:
    return ContainerReader(LogPosition(CONTAINER, REQUEST, owners or (OWNER,)), Client.of(server.url, TOKEN), sink)


def without(content: bytes, *parts: str) -> str:
    lines = content.decode().splitlines(keepends=True)
    return "".join(one for one in lines if not any(part in one for part in parts))


def test_files_that_grow_byte_by_byte_are_published_as_they_end(stage):
    """All traps at once: unfinished lines, no last newline, carriage returns, a long line, the token, tunnel lines."""
    stage.log.has_tunnel = True
    for at in range(0, 320_000, 40_000):
        stage.log.files = {name: text[:at] for name, text in FILES.items()} | {
            "crunch-run.txt": stage.log.files.get("crunch-run.txt", FILES["crunch-run.txt"])
        }
        stage.poll(2)
    for name in ("stdout.txt", "stderr.txt"):
        stage.log.write(name, line("begun")[:-3])
    stage.poll()
    stage.log.end()
    stage.finish()

    for name in ("keepstore", "hoststat", "arv-mount", "stderr", "stdout", "node-info"):
        assert stage.sink.text(name) == stage.log.saved[f"{name}.txt"].decode(), name
    assert stage.sink.text("container") == FILES["container.json"].decode()
    assert stage.sink.text("crunch-run") == without(stage.log.saved["crunch-run.txt"], SECRET, "tunnel connection")
    assert stage.log.saved["crunch-run.txt"].count(b"tunnel connection") > 10
    assert max(stage.polled) <= 4
    assert not any("usage_report" in topic for topic in stage.sink.taken)


def test_the_token_is_in_no_publication_position_or_error(stage, caplog, capsys):
    caplog.set_level("DEBUG")
    stage.log.files = {"crunch-run.txt": FILES["crunch-run.txt"][:-20], "stdout.txt": f"my token {SECRET}\n".encode()}
    stage.poll()
    stage.log.end()
    stage.finish()

    kept = repr((stage.sink.taken, stage.reader.position, stage.reader.statistics, capsys.readouterr(), caplog.text))
    assert "secretofthe" not in kept
    assert stage.reader.statistics.omitted_lines == 2


def test_the_interval_adapts_to_the_lines(stage):
    stage.log.write("stdout.txt", line("1"))
    stage.poll()
    assert stage.reader.due_at == SHORTEST_SECONDS

    stage.poll(6)
    quiet = stage.at
    stage.poll()
    assert stage.at - quiet == LONGEST_SECONDS

    stage.log.write("stdout.txt", line("2"))
    stage.poll()
    assert stage.reader.due_at - (quiet + LONGEST_SECONDS) == SHORTEST_SECONDS
    assert stage.polled[1:] == [1] * 7 + [2]


def test_of_many_files_that_grow_all_are_read_in_turn(stage):
    for _ in range(4):
        for number in range(7):
            stage.log.write(f"file{number}.txt", line("more"))
        stage.poll()

    assert stage.polled == [4, 4, 4, 4]
    assert len(stage.sink.taken) == 7


def test_more_bytes_than_one_request_reads_are_read_by_the_next(stage):
    text = b"".join(line("y" * 99) for _ in range(READ_BYTES // 100))
    stage.log.write("stdout.txt", text)
    stage.poll(3)

    assert stage.sink.text("stdout") == text.decode()
    assert stage.polled == [2, 2, 1]


def test_a_lost_tunnel_and_a_full_controller_only_delay_the_lines(stage):
    stage.log.write("stdout.txt", line("1"))
    stage.poll()
    stage.log.write("stdout.txt", line("2"))
    stage.log.state = State.GONE
    stage.poll()
    stage.log.state = State.RUNNING
    stage.server.waiting = AT_ONCE + QUEUED
    stage.poll()
    stage.server.waiting = 0
    stage.server.cut_connections()
    stage.poll(2)

    assert stage.sink.text("stdout") == stage.log.files["stdout.txt"].decode()


def test_a_lost_node_leaves_marks_that_files_were_cut_back(stage):
    """A file that the last save did not have is cut back to nothing."""
    stage.log.write("stdout.txt", line("saved"))
    stage.log.save()
    stage.log.write("stdout.txt", line("lost"))
    stage.log.write("stderr.txt", line("lost"))
    stage.poll()
    stage.log.lose_node()
    stage.poll()
    stage.log.state = State.CANCELLED
    stage.finish()

    stdout, stderr = (stage.sink.taken[f"container.{OWNER}.{CONTAINER}.log.{one}"][-1] for one in ("stdout", "stderr"))
    assert (stdout.piece.cut_back_from, stdout.piece.begin) == (
        len(line("saved")) + len(line("lost")),
        len(line("saved")),
    )
    assert (stderr.piece.cut_back_from, stderr.piece.begin) == (len(line("lost")), 0)
    assert (stdout.body, stage.reader.statistics.cut_back) == ('""', 2)


def test_each_owner_of_a_request_gets_the_log_once_by_the_same_requests(stage):
    """An owner who comes later gets what there is, and one whose requests have moved gets nothing more."""
    stage.log.write("stdout.txt", line("1"))
    stage.poll()
    stage.reader.position.owners = (OWNER, OTHER)
    stage.poll()
    expected = stage.log.files["stdout.txt"].decode()
    assert (stage.sink.text("stdout", OWNER), stage.sink.text("stdout", OTHER)) == (expected, expected)

    stage.reader.position.owners = (OTHER,)
    stage.log.write("stdout.txt", line("2"))
    stage.log.end()
    stage.finish()

    assert stage.sink.text("stdout", OTHER) == stage.log.saved["stdout.txt"].decode()
    assert len(stage.sink.taken[f"container.{OWNER}.{CONTAINER}.log.stdout"]) == 1
    assert (stage.polled, stage.reader.statistics.cut_back) == ([2, 2, 2], 0)


@pytest.mark.parametrize("name", [".txt", "a.b.txt", "é.txt", f"{'x' * 41}.txt", "a b.json", "#.txt", "stdout.json"])
def test_a_file_whose_name_is_no_word_of_a_topic_or_is_taken_is_no_log(stage, name):
    stage.log.files = {"stderr.txt": line("1"), "stdout.txt": b"", name: line("other")}
    if name == "stdout.json":  # of two, the first by name
        stage.log.files = {"stderr.txt": line("1"), "stdout.json": b"{}\n", "stdout.txt": line("other")}
    stage.log.end()
    stage.finish()

    assert "other" not in repr(stage.sink.taken)
    assert stage.sink.text("stderr") == stage.log.saved["stderr.txt"].decode()
    assert stage.reader.statistics.cut_back == 0


def test_a_publication_without_an_answer_is_an_error_and_its_bytes_are_read_again(stage):
    stage.log.write("stdout.txt", line("1"))
    stage.sink.fails = [UnavailableError("no answer")]
    with pytest.raises(UnavailableError):
        stage.reader.poll(0.0)

    again = reader(stage.server, stage.sink)
    again.position.offsets = stage.reader.position.offsets
    again.poll(0.0)

    assert stage.sink.text("stdout") == stage.log.files["stdout.txt"].decode()


def test_a_log_that_is_gone_ends_its_reader_after_some_tries(stage):
    stage.log.state = State.TRASHED
    stage.poll(TRIES_AT_END)
    assert not stage.reader.position.is_read

    stage.finish()

    assert (stage.reader.statistics.absent, len(stage.polled)) == (1, 2 * TRIES_AT_END)


def test_without_keep_web_the_end_waits(stage):
    stage.log.write("stdout.txt", line("1"))
    stage.log.end()
    stage.server.endpoint.has_keep_web = False
    stage.reader.is_over = True
    stage.poll(3)
    assert (stage.reader.position.is_read, stage.sink.taken) == (False, {})

    stage.server.endpoint.has_keep_web = True
    stage.finish()

    assert stage.sink.text("stdout") == stage.log.saved["stdout.txt"].decode()


def test_a_refused_token_ends_the_reader(stage):
    with pytest.raises(TokenRefused):
        ContainerReader(LogPosition(CONTAINER, REQUEST, (OWNER,)), Client.of(stage.server.url, "no"), Sink()).poll(0)


def test_the_client_reads_what_the_endpoint_lists(stage):
    client = Client.of(f"{stage.server.url}/", TOKEN)
    stage.log.files = {"a b&.txt": b"1234", "empty.txt": b""}

    assert client.sizes(REQUEST, CONTAINER) == {"a b&.txt": 4, "empty.txt": 0}
    assert client.read(REQUEST, CONTAINER, "a b&.txt", begin=1, limit=2) == b"23"
    assert client.read(REQUEST, CONTAINER, "a b&.txt", begin=4, limit=2) == b""
    assert client.read(REQUEST, CONTAINER, "empty.txt", begin=0, limit=2) == b""
    with pytest.raises(LogAbsent):
        client.read(REQUEST, CONTAINER, "none.txt", begin=0, limit=2)
    with pytest.raises(LogsUnavailable, match="Error"):
        Client.of("http://127.0.0.1:1", TOKEN).sizes(REQUEST, CONTAINER)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(303, {"Location": "http://127.0.0.1:1/"}),
        Answer(200, {}, b"12345678"),
        Answer(206, {"Content-Range": "bytes 0-7/8"}, b"12345678"),
        Answer(206, {"Content-Type": "multipart/byteranges; boundary=x"}, b"--x"),
        Answer(207, {}, b"<html>"),
        Answer(503),
    ],
    ids=["redirect", "whole file", "another range", "several ranges", "list", "busy"],
)
def test_an_answer_that_is_not_the_part_that_was_asked_for_is_no_text(stage, answer):
    stage.server.endpoint.records = lambda *_: answer

    with pytest.raises(LogsUnavailable):
        Client.of(stage.server.url, TOKEN).read(REQUEST, CONTAINER, "stdout.txt", begin=4, limit=4)
