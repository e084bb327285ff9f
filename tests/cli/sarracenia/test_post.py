"""The command `signalbox post`."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from signalbox.cli.main import app
from signalbox.cli.sarracenia.post import size_bytes
from signalbox.cli.sarracenia.poster import PostRun
from signalbox.errors import RejectedError, UnavailableError
from signalbox.sarracenia.formats.posts import PostSettings
from signalbox.sarracenia.rights.names import ExchangeName
from tests.cli.sarracenia.stage import FilesStage, files_stage
from tests.fakes.aws import aws  # noqa: F401 - a fixture
from tests.unit.sarracenia.cases.generate import plant, without_time
from tests.unit.sarracenia.formats.test_posts import CASES, comparable, in_order, read_case


@pytest.fixture
def stage(aws: None) -> Iterator[FilesStage]:  # noqa: F811
    with files_stage() as stage:
        yield stage


@pytest.fixture
def tree(tmp_path) -> Path:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "f.txt").write_text("hello")
    return tmp_path


def post(tree: Path, *options: str) -> Result:
    command = ["post", str(tree / "a"), "-r", "--exchange", "xs_alice", "--base-url", "https://e/"]
    return CliRunner().invoke(app, [*command, "--base-dir", str(tree), *options], catch_exceptions=False)


def lines(result: Result) -> list[dict]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("case", [path for path in CASES if path.stem != "one_directory"], ids=lambda path: path.stem)
def test_a_dry_run_prints_what_sr3_post_sends(case, tmp_path):
    plant(tmp_path)
    expected = read_case(case, tmp_path)
    command = ["post", str(tmp_path / "data"), "--recursive", "--exchange", "xs_alice", "--dry-run", "--json"]

    result = CliRunner().invoke(app, [*command, *options_of(expected["posting"])], catch_exceptions=False)

    assert in_order(comparable(document_of(line)) for line in lines(result)) == in_order(
        map(comparable, expected["messages"])
    )


def options_of(settings: dict) -> Iterator[str]:
    for name, value in settings.items():
        if name == "content_limit_bytes":
            yield from ("--inline", "--inline-limit", str(value))
        elif value is not None:
            option = {"form": "format", "block_bytes": "block-size", "method": "identity", "base_directory": "base-dir"}
            yield from (f"--{option.get(name, name.replace('_', '-'))}", str(value))


def document_of(line: dict) -> dict:
    if line["body"].startswith("{"):
        line["body"] = json.loads(line["body"])
    return without_time(line)


def test_a_dry_run_prints_a_line_for_each_message(tree):
    result = post(tree, "--dry-run", "--format", "v02")

    assert [line.split()[:2] for line in result.stdout.splitlines()] == [
        ["xs_alice", "v02.post"],
        ["xs_alice", "v02.post.a"],
        ["xs_alice", "v02.post.a.b"],
    ]


@pytest.mark.parametrize("slash", ["", "/"])
def test_the_directory_of_a_file_url_is_not_announced(slash, tree):
    command = ["post", str(tree), "--exchange", "xs_alice", "--base-url", f"file:{tree}{slash}", "-r", "--dry-run"]

    result = CliRunner().invoke(app, [*command, "--json"], catch_exceptions=False)

    assert [json.loads(one["body"])["relPath"] for one in lines(result)] == ["a", "a/b", "a/b/f.txt"]


def test_a_name_that_is_not_utf_8_is_printed_escaped(tree):
    Path(os.fsdecode(bytes(tree / "a") + b"/\xe9")).write_text("x")

    result = post(tree, "--dry-run", "--format", "v02")

    assert result.stdout.splitlines()[2].endswith(r"a/\udce9")


@pytest.mark.parametrize(
    ("options", "source"),
    [
        ([], "alice"),
        (["--exchange", "xs_bob_images.fifo"], "bob"),
        (["--exchange", "xpublic"], None),
        (["--user", "carol"], "carol"),
        (["--user", "carol", "--source", "dave"], "dave"),
    ],
)
def test_the_default_source_is_the_user_or_the_owner_of_the_exchange(options, source, tree):
    messages = lines(post(tree, "--dry-run", "--json", *options))

    assert {json.loads(one["body"]).get("source") for one in messages} == {source}


def test_files_are_published_to_the_exchange(tree, stage):
    expected = lines(post(tree, "--dry-run", "--json"))
    url = stage.queue_url("xs_alice")

    result = post(tree, "--aws", "--json")

    published = stage.published("xs_alice")
    assert url
    assert result.exit_code == 0
    assert in_order(map(document_of, published)) == in_order(map(document_of, expected))
    assert all(one.pop("message_id") for one in lines(result))


def test_v02_is_published_with_its_headers(tree, stage):
    stage.queue_url("xs_alice")

    result = post(tree, "--aws", "--format", "v02", "--identity", "md5")

    headers = {one["body"].split("/")[-1]: one["headers"] for one in stage.published("xs_alice")}
    assert headers["f.txt"]["sum"] == "d,5d41402abc4b2a76b9719d911017c592"
    assert result.stdout == ""


def test_a_missing_exchange_is_named(tree, stage):
    with pytest.raises(RejectedError, match="xs_alice"):
        post(tree, "--aws")


def test_a_file_without_a_valid_topic_is_reported_and_the_others_are_announced(tree, stage):
    stage.queue_url("xs_alice")
    deep = tree / "a" / ("é" * 100) / ("é" * 40)
    deep.mkdir(parents=True)
    (deep / "f").write_text("x")

    result = post(tree, "--aws", "--json")

    assert result.exit_code == 1
    assert "has 287 bytes; at most 255 fit" in result.stderr
    assert len(stage.published("xs_alice")) == len(lines(result)) == 5


def test_a_message_refused_by_sqs_is_reported_and_the_others_are_announced(tree, stage):
    stage.queue_url("xs_alice")
    (tree / "a" / "\x01").write_text("x")

    result = post(tree, "--aws", "--format", "v02")

    assert result.exit_code == 1
    assert result.stderr.startswith("error: xs_alice  v02.post.a  ")
    assert len(stage.published("xs_alice")) == 3


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--block-size", "0"], "--block-size: expected a number of bytes"),
        (["--identity", "crc"], "identity method 'crc'"),
        (["--inline", "--format", "v02"], "v02 has no embedded content"),
        (["--exchange", "alice"], "exchange 'alice'"),
        (["--base-url", "e"], "base URL 'e'"),
    ],
)
def test_invalid_options_are_refused(options, problem, tree):
    with pytest.raises(RejectedError, match=problem):
        post(tree, "--dry-run", *options)


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("10k", 10_240), ("10M", 10_485_760), ("1g", 1024**3)])
def test_sizes_have_units(text, number):
    assert size_bytes(text, "--size") == number


@pytest.mark.parametrize("text", ["", "M", "-1", "1.5M", "10T", "0k", "²"])
def test_an_invalid_size_is_refused(text):
    with pytest.raises(RejectedError, match="--size: expected"):
        size_bytes(text, "--size")


def test_a_watch_names_its_stage_first(stage, tree, monkeypatch):
    monkeypatch.setattr(PostRun, "run", lambda *_: None)  # which ends by a signal

    assert post(tree, "--watch", "--aws").stderr == "· announcements to xs_alice in stage signalbox in us-east-1\n"


@pytest.mark.parametrize("existing", [False, True])
def test_changes_are_announced_until_a_signal_arrives(existing, tree):
    program = "from signalbox.cli.main import main; main()"
    command = [sys.executable, "-c", program, "post", str(tree / "a"), "-r", "--exchange", "xs_alice"]
    command += ["--base-url", "https://e/", "--base-dir", str(tree), "--watch", "--every", "0", "--dry-run", "--json"]
    with subprocess.Popen(  # noqa: S603 - our own program
        [*command, *(["--existing"] if existing else [])], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watching:
        assert "looks for changes" in watching.stderr.readline()
        there = [json.loads(watching.stdout.readline()) for _ in range(3 if existing else 0)]
        (tree / "a" / "new").write_text("x")
        new = json.loads(json.loads(watching.stdout.readline())["body"])
        (tree / "a" / "new").unlink()
        gone = json.loads(json.loads(watching.stdout.readline())["body"])
        watching.send_signal(signal.SIGTERM)
        _, errors = watching.communicate(timeout=30)

    assert [json.loads(one["body"])["relPath"] for one in there] == (["a", "a/b", "a/b/f.txt"] if existing else [])
    assert (new["relPath"], new["size"]) == ("a/new", 1)
    assert (gone["relPath"], gone["fileOp"]) == ("a/new", {"remove": ""})
    assert watching.returncode == 0
    assert f"{len(there) + 2} messages printed, none sent" in errors


@dataclass
class UnreliableSink:
    """Fails at first, then accepts all messages, and then ends the command with a signal."""

    failures: int
    is_printing: bool = True
    is_dry: bool = False
    sent: list[str] = field(default_factory=list)

    def send(self, messages):
        for message in messages:
            if self.failures:
                self.failures -= 1
                raise UnavailableError("outage")
            self.sent.append(json.loads(message.body)["relPath"])
            yield None
        if len(self.sent) == 3:
            os.kill(os.getpid(), signal.SIGTERM)


def test_changes_during_an_outage_are_announced_later(tree, capsys):
    settings = PostSettings(ExchangeName("xs_alice"), "https://e/", base_directory=str(tree))
    run = PostRun(settings, (str(tree / "a"),), recursive=True, watches=True, existing=True, seconds_between=0)
    sink = UnreliableSink(failures=2)

    run.run(sink)

    assert sink.sent == ["a", "a/b", "a/b/f.txt"]
    assert capsys.readouterr().err.splitlines() == [
        "· looks for changes every 0 s",
        *["· cannot announce now, and tries again: outage"] * 2,
        "· 3 messages announced to xs_alice",
    ]


def test_in_a_pipe_too_the_number_of_announcements_is_printed_and_the_option_for_contents(stage, tree):
    stage.queue_url("xs_alice")
    where = ["--exchange", "xs_alice", "--base-url", "https://e/", "--base-dir", str(tree), "--aws"]

    alone = CliRunner().invoke(app, ["post", str(tree / "a"), *where], catch_exceptions=False)
    whole = CliRunner().invoke(app, ["post", str(tree / "a"), "-r", *where], catch_exceptions=False)

    assert alone.stderr.splitlines() == [
        "· 1 message announced to xs_alice",
        f"· without what is in {tree / 'a'}: --recursive announces it too",
        "· in stage signalbox in us-east-1",
    ]
    assert whole.stderr.splitlines()[0] == "· 3 messages announced to xs_alice"
    assert len(whole.stderr.splitlines()) == 2
