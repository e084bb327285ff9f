"""`signalbox split explain`, offline."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from signalbox.cli.main import app
from signalbox.errors import RejectedError

SESSIONS = [
    {"session": "ann", "queues": {"memes": {"queue_type": "SQS", "message_filter": {"tenant": "^Avi\\."}}}},
    {
        "session": "bob",
        "queues": [
            {"queue_id": "memes", "queue_type": "SQS", "jq_filter": ".Body | fromjson | .important == true"},
            {"queue_id": "memes", "queue_type": "Kafka"},
        ],
    },
    {
        "session": "eve",
        "queues": {"*": {"queue_type": "SQS", "queue_mode": "mirror", "filter": {"metadata": "tenant"}}},
    },
]
MESSAGES = [
    {"Body": "{}", "MessageAttributes": {"tenant": {"DataType": "String", "StringValue": "Avi.Test"}}},
    {"Body": '{"important": true}'},
    {"Body": "plain"},
]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "sessions.json").write_text(json.dumps(SESSIONS))
    (tmp_path / "messages.json").write_text(json.dumps(MESSAGES))
    return tmp_path


def explain(folder: Path, *options: str, queue: str = "memes", **run: object) -> Result:
    paths = ["--sessions", str(folder / "sessions.json"), "--messages", str(folder / "messages.json")]
    command = ["split", "explain", "--queue", queue, *paths, *options]
    return CliRunner().invoke(app, command, catch_exceptions=False, **run)


def test_each_message_is_one_line_of_json(files):
    result = explain(files, "--json")

    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(line["message"], line["owner"], line["copies"]) for line in lines] == [
        (0, "ann", ["eve"]),
        (1, "bob", []),
        (2, "deployed", []),
    ]
    assert [verdict["session"] for verdict in lines[2]["verdicts"]] == ["ann", "bob", "eve"]
    assert lines[2]["verdicts"][1]["reason"] == "jq_filter: says neither true nor false"
    assert result.stderr == "· not on SQS, so not split: memes (Kafka)\n"


def test_the_table_has_the_reasons(files):
    text = explain(files).stdout

    assert "ann (steal): message_filter.tenant: matches" in text
    assert "eve (mirror): filter.metadata: an attribute matches" in text
    assert "deployed" in text


def test_a_session_whose_filter_is_too_slow_would_be_cancelled(files):
    looping = [{"session": "ann", "queues": {"memes": {"jq_filter": "def f: f; f"}}}]
    (files / "sessions.json").write_text(json.dumps(looping))
    (files / "messages.json").write_text(json.dumps(MESSAGES[:1]))

    assert "; its session would be cancelled" in " ".join(explain(files).stdout.split())


def test_without_sessions_the_deployed_consumer_receives_everything(files):
    (files / "sessions.json").write_text("[]")

    assert "no session to evaluate" in explain(files).stdout
    assert json.loads(explain(files, "--json").stdout.splitlines()[0]) == {
        "message": 0,
        "owner": "deployed",
        "copies": [],
        "verdicts": [],
    }


def test_s3_events_are_evaluated_by_key_and_by_given_metadata(files):
    body = json.dumps({"Records": [{"s3": {"bucket": {"name": "uploads"}, "object": {"key": "cat+1.jpg"}}}]})
    programs = {"ann": '.S3Object.key == "cat 1.jpg"', "bob": '.S3Metadata.client == "a"'}
    sessions = [{"session": name, "queues": {"*": {"jq_filter": text}}} for name, text in programs.items()]
    (files / "sessions.json").write_text(json.dumps(sessions))
    (files / "messages.json").write_text(json.dumps([{"Body": body}, {"Body": body, "S3Metadata": {"client": "a"}}]))

    lines = [json.loads(line)["verdicts"] for line in explain(files, "--json", "--s3-event").stdout.splitlines()]

    assert [[verdict["matches"] for verdict in verdicts] for verdicts in lines] == [[True, False], [True, True]]
    assert "read only while messages are forwarded" in lines[0][1]["reason"]


def test_attributes_inside_sns_notifications_count_if_asked_for(files):
    envelope = {"Type": "Notification", "MessageAttributes": {"tenant": {"Type": "String", "Value": "avi.x"}}}
    (files / "messages.json").write_text(json.dumps([{"Body": json.dumps(envelope)}]))

    assert json.loads(explain(files, "--json").stdout)["owner"] == "deployed"
    assert json.loads(explain(files, "--json", "--sns").stdout)["owner"] == "ann"


def test_messages_may_come_from_standard_input(files):
    command = [
        "split",
        "explain",
        "--queue",
        "memes",
        "--sessions",
        str(files / "sessions.json"),
        "--messages",
        "-",
        "--json",
    ]

    result = CliRunner().invoke(app, command, input=json.dumps(MESSAGES[:1]), catch_exceptions=False)

    assert json.loads(result.stdout)["owner"] == "ann"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot read .*No such file"),
        (b"\xff", "cannot read .*utf-8"),
        (b"{", "is not JSON: Expecting property name"),
        (b"[" * 100_000, "is not JSON: maximum recursion depth"),
        (b"{}", "expected a list of SQS Message objects"),
        (b"[{}]", r"messages\[0\]\.Body: is missing"),
    ],
    ids=["missing", "not text", "not JSON", "too deep", "no list", "no body"],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(files, content, reason):
    (files / "messages.json").unlink()
    if content is not None:
        (files / "messages.json").write_bytes(content)

    with pytest.raises(RejectedError, match=reason):
        explain(files)


def test_all_problems_of_the_sessions_are_reported_together(files):
    queues = {"memes": {"queue_type": "SQX"}, "ads": {"queue_type": "SQS", "jq_filter": "idk", "colour": 1}}
    (files / "sessions.json").write_text(json.dumps([{"session": "ann", "queues": queues}]))

    with pytest.raises(RejectedError) as refusal:
        explain(files)

    assert [line.split(": ")[0] for line in str(refusal.value).splitlines()] == [
        "sessions[0].queues.memes.queue_type",
        "sessions[0].queues.ads.colour",
        "sessions[0].queues.ads.jq_filter",
    ]
