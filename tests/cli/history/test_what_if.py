"""`bind --dry-run --over`, `grant --dry-run --over` and `split explain --over` on past events in DuckDB."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import boto3
import pytest
from typer.testing import CliRunner, Result

from signalbox.aws.history.athena import Athena
from signalbox.aws.kept.store import S3KeptMessages
from signalbox.cli.main import app
from signalbox.errors import RejectedError
from signalbox.history.event import HistoryEvent
from signalbox.history.what_if.window import InvalidWindow
from signalbox.kept.objects import kept_batch
from signalbox.messages import Message
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import sqs_name
from tests.cli.exchange.stage import exchange_stage
from tests.cli.shared.stage import FakeStage, fake_stage
from tests.fakes import duckdb
from tests.fakes.aws import aws

__all__ = ["aws"]
REALM = "xs_alice.fifo"


@pytest.fixture
def past(monkeypatch: pytest.MonkeyPatch) -> list[HistoryEvent]:
    """The events that Athena reads; moto has no query engine."""
    events: list[HistoryEvent] = []
    monkeypatch.setattr(Athena, "rows", lambda _, query: duckdb.results([query], events)[0])
    return events


@pytest.fixture
def stage(aws: None, past: list[HistoryEvent]) -> Iterator[FakeStage]:
    with exchange_stage() as stage:
        yield stage


@pytest.fixture
def splits(aws: None, past: list[HistoryEvent]) -> Iterator[FakeStage]:
    with fake_stage() as stage:
        queue = {"queue_id": "jobs", "original": "idle-queue"}
        stage.replies["status"] = lambda _: {"splits": [{"target": "lambda/idle", "queues": [queue]}]}
        yield stage


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--aws"], catch_exceptions=False)


def message(
    number: int, topic: str, *, exchange: str = "xpublic", kind: str = "routed", hours: float = 1, **fields: object
) -> HistoryEvent:
    outcome = "live" if kind == "logged" else "delivered"
    at = datetime.now(UTC) - timedelta(hours=hours)
    given = {"message_id": f"m{number}", "source": exchange, "size_bytes": 1_000, "topic": topic, **fields}
    return HistoryEvent(f"{kind}:{number}:{fields.get('destination')}", at, "exchange", kind, outcome, **given)


def test_a_dry_run_of_a_binding_changes_nothing_and_shows_what_it_would_change(stage):
    shown = ran("bind", "xpublic", "q_alice", "v03.#", "v02.#", "--dry-run")
    document = json.loads(ran("bind", "xpublic", "q_alice", "v02.#", "--dry-run", "--json").stdout)

    assert shown.stdout.splitlines() == [
        "xpublic → q_alice of alice  'v03.#'  is bound already",
        "xpublic → q_alice of alice  'v02.#'  would be bound",
    ]
    assert (document["new"], document["bound"], document["owner"]) == (["v02.#"], ["v03.#"], "alice")
    assert "bind" not in stage.commands
    assert shown.stderr == ""


def test_a_binding_is_tried_on_the_past(stage, past, tmp_path):
    past += [message(number, "v02.a", destination="q_bob", labels={"publisher": "ann"}) for number in range(4)]
    past += [message(9, "v02.b", destination="q_alice"), message(8, "v03.a"), message(7, "v02.c", hours=3)]
    picture = tmp_path / "past.svg"

    shown = ran("bind", "xpublic", "q_alice", "v02.#", "--dry-run", "--over", "2h", "--picture", str(picture))

    lines = shown.stdout.splitlines()
    assert lines[1] == "'v02.#': 5 messages on 2 topics in the last 2h, 5 kB, the largest 1 kB"
    assert lines[2].startswith("at most 5 a minute (")
    assert any("█" in line for line in lines)
    assert ["v02.a", "4", "4", "kB"] in [line.split() for line in lines]
    assert "published by ann 4, unknown 1" in lines
    assert "4 of 5 would be new to q_alice; it received the others, or its bindings match them" in lines
    assert lines[-1].startswith("cost: ")
    assert shown.stderr.startswith("· reading the last 2h of the history\n")
    svg = picture.read_text()
    assert "<desc" in svg
    assert "5 messages on 2 topics" in svg
    assert "bind" not in stage.commands


def test_a_binding_of_an_exchange_is_tried_without_a_cost(stage, past):
    past.append(message(1, "v02.a"))

    found = json.loads(ran("bind", "xpublic", "xs_alice", "v02.#", "--dry-run", "--over", "7d", "--json").stdout)
    lines = ran("bind", "xpublic", "xs_alice", "v02.#", "--dry-run", "--over", "7d").stdout.splitlines()

    assert (found["past"]["messages"], found["past"]["rate"]["peak"], found["cost"]) == (1, 1, None)
    assert lines[-1] == "each queue that is bound to it, with a pattern that matches, would get a copy"


def test_nothing_in_the_past_is_one_line(stage, past):
    lines = ran("bind", "xpublic", "q_bob", "v02.#", "--dry-run", "--over", "7d").stdout.splitlines()

    assert lines[1:] == ["'v02.#': no message in the last 7d"]


def test_an_installed_command_shows_the_answer_and_draws_no_picture(stage, past, monkeypatch, tmp_path):
    past.append(message(1, "v02.a"))
    monkeypatch.setattr("signalbox.local.files.CHECKOUT", Path("/nowhere"))
    given = ["bind", "xpublic", "q_bob", "v02.#", "--dry-run", "--over", "7d", "--json"]

    assert json.loads(ran(*given).stdout)["cost"]["usd_a_month_most"] > 0
    with pytest.raises(RejectedError, match="checkout"):
        ran(*given, "--picture", str(tmp_path / "a.svg"))


@pytest.mark.parametrize(
    ("words", "error", "problem"),
    [
        (["xpublic", "q_a", "a", "--over", "7d"], RejectedError, "--over needs --dry-run"),
        (["xpublic", "q_a", "a", "--dry-run", "--picture", "a.svg"], RejectedError, "--picture needs --over"),
        (["xpublic", "q_a", "a", "--dry-run", "--over", "7d", "--picture", "a.png"], RejectedError, "ends with .svg"),
        (["xpublic", "q_a", "a", "--dry-run", "--over", "7 days"], InvalidWindow, "--over: .* such as 2h or 7d"),
        (["xpublic", "q_a", "a", "--dry-run", "--over", "60d"], InvalidWindow, "from 1m to 31d"),
        (["xpublc", "q_alice", "a", "--dry-run"], RejectedError, "did you mean 'xpublic'"),
        (["xpublic", "q_alicia", "a", "--dry-run"], RejectedError, "did you mean 'q_alice'"),
        (["xpublic", "xs_alic", "a", "--dry-run"], RejectedError, "did you mean 'xs_alice'"),
        (["xpublic", "q_alice", "#.#.#", "--dry-run"], RejectedError, "at most 2 are allowed"),
    ],
)
def test_what_cannot_be_asked_is_refused(stage, words, error, problem):
    with pytest.raises(error, match=problem):
        ran("bind", *words)
    assert "bind" not in stage.commands


def test_a_picture_that_cannot_be_written_is_refused(stage, past, tmp_path):
    with pytest.raises(RejectedError, match="cannot write"):
        ran("bind", "xpublic", "q_bob", "a", "--dry-run", "--over", "1h", "--picture", str(tmp_path / "no" / "a.svg"))


def _visible(command):
    """Let bob gain the second topic, and carol lose both; without topics nothing is checked."""
    number = len(command.get("topics", ()))
    changes = {"bob": ("01"[:number].ljust(number, "0"), "1" * number), "carol": ("1" * number, "0" * number)}
    found = [{"users": [user], "before": before, "after": after} for user, (before, after) in changes.items()]
    return {**command, "dry_run": True, "subscriptions": [], "more": 0, "visibility": found, "more_users": 3}


def test_a_grant_is_tried_on_the_past_with_who_could_and_would_see_it(stage, past, tmp_path):
    stage.replies["grant"] = _visible
    past += [message(number, "logs.a", exchange=REALM, kind="logged") for number in range(3)]
    past += [message(7, "logs.b", exchange=REALM, kind="logged"), message(8, "states", exchange=REALM, kind="logged")]
    session = {"source": REALM, "labels": {"user": "bob", "role": "subscriber"}}
    past.append(HistoryEvent("session:started:1", datetime.now(UTC), "live", "session", "started", **session))
    past[-1] = HistoryEvent("s", datetime.now(UTC) - timedelta(minutes=1), "live", "session", "started", **session)
    given = ["grant", "add", "@lab", REALM, "logs.", "--match", "prefix", "--dry-run", "--over", "7d"]

    shown = ran(*given, "--picture", str(tmp_path / "a.svg")).stdout.splitlines()
    document = json.loads(ran(*given, "--json").stdout)

    assert shown[0] == "no present subscription would change"
    assert shown[1] == "prefix 'logs.' of xs_alice.fifo: 4 messages on 2 topics in the last 7d, 4 kB, the largest 1 kB"
    rows = [line.split() for line in shown]
    assert ["bob", "1", "(1", "kB)", "4", "(4", "kB)", "1"] in rows
    assert ["carol", "4", "(4", "kB)", "0", "(0", "bytes)", "0"] in rows
    assert "1 of 2 users would gain messages, 1 would lose some" in shown
    assert "and 3 more users" in shown
    assert shown[-1].endswith("if each of them were always connected and subscribed")
    assert stage.asked[0]["topics"] == ["logs.a", "logs.b"]
    assert (document["past"]["messages"], document["checked_topics"]) == (4, 2)
    assert [one["user"] for one in document["users"]] == ["carol", "bob"]
    assert "visibility" not in document
    assert "would see" in (tmp_path / "a.svg").read_text()


def test_the_right_to_publish_counts_each_users_own_messages(stage, past):
    stage.replies["ungrant"] = _visible
    past += [message(n, "logs.a", exchange=REALM, kind="logged", labels={"publisher": "carol"}) for n in range(2)]
    past.append(message(3, "logs.a", exchange=REALM, kind="logged", labels={"publisher": "ann"}))

    given = ["grant", "remove", "carol", REALM, "logs.a", "--right", "write", "--dry-run", "--over", "7d"]
    document = json.loads(ran(*given, "--json").stdout)
    shown = ran(*given).stdout

    assert document["users"][0] == {
        "user": "carol",
        "before": {"messages": 2, "bytes": 2_000},
        "after": {"messages": 0, "bytes": 0},
        "sessions": 0,
    }
    assert document["cost"] is None
    assert "could publish" in shown


def test_without_past_messages_a_grant_asks_for_no_topics(stage, past):
    stage.replies["grant"] = lambda command: {**command, "dry_run": True, "subscriptions": [], "more": 0}

    shown = ran("grant", "add", "bob", REALM, "logs.a", "--dry-run", "--over", "7d").stdout.splitlines()

    assert shown[1:] == ["exact 'logs.a' of xs_alice.fifo: no message in the last 7d"]
    assert "topics" not in stage.asked[0]


def forwarded(number: int, outcome: str = "deployed", *, queue: str = "orders", **labels: str) -> HistoryEvent:
    at = datetime.now(UTC) - timedelta(minutes=3)
    given = {"source": queue, "size_bytes": 500, "message_id": f"m{number}", "labels": {"target": "lambda/a", **labels}}
    return HistoryEvent(f"routed:{number}:{outcome}", at, "splitting", "routed", outcome, **given)


def test_the_past_of_a_split_queue_says_who_got_what_and_why(splits, past, tmp_path):
    of_ann = {"session": "ann-1", "owner": "ann@desk", "verdict": "message_filter.tenant: matches 'x'"}
    past += [forwarded(1), forwarded(2), forwarded(3, "session", **of_ann), forwarded(4, queue="other")]
    given = ["split", "explain", "--over", "2h", "--queue", "orders"]

    shown = ran(*given, "--picture", str(tmp_path / "a.svg")).stdout
    document = json.loads(ran(*given, "--target", "lambda/a", "--json").stdout)

    lines = shown.splitlines()
    assert lines[0] == (
        "orders: 3 messages came in within the last 2h, 1.5 kB, the largest 500 bytes; no filter can match more"
    )
    assert lines[2] == "1 of them went to sessions and 2 to the deployed consumer"
    assert ["deployed", "got", "2", "1", "kB", "no", "session", "matches"] in [line.split() for line in lines]
    assert "ann-1 of ann@desk" in shown
    assert "message_filter.tenant: matches 'x'" in shown
    assert (document["messages"], document["to_sessions"]["messages"]) == (3, 1)
    assert "3 messages came in" in (tmp_path / "a.svg").read_text()


def test_a_queue_without_past_messages_may_be_named_as_sessions_name_it(splits, past):
    past.append(forwarded(1))

    assert ran("split", "explain", "--over", "2h", "--queue", "jobs").stdout == "jobs: no message in the last 2h\n"
    assert ran("split", "explain", "--over", "2h").stdout.startswith("all split queues: 1 message came in")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--over", "2h", "--queue", "order"], "did you mean 'orders'"),
        (["--over", "2h", "--target", "lambda/b"], "did you mean 'lambda/a'"),
        (["--over", "2h", "--messages", "a.json"], "give no --messages"),
        (["--over", "2h", "--sessions", "a.json"], "needs --queue"),
        (["--over", "2h", "--sessions", "a.json", "--queue", "orders", "--target", "lambda/a"], "no --target"),
        (["--queue", "orders"], "give --queue and --messages, or --over"),
        (["--picture", "a.svg"], "--picture needs --over"),
    ],
)
def test_what_cannot_be_explained_is_refused(splits, past, words, problem):
    past.append(forwarded(1))

    with pytest.raises(RejectedError, match=problem):
        ran("split", "explain", *words)


SESSIONS = [
    {"session": "ann", "queues": {"*": {"message_filter": {"tenant": "^a"}}}},
    {"session": "bob", "queues": {"orders": {"queue_mode": "mirror", "jq_filter": '.Body == "two"'}}},
]


def _kept(number: int, *, minutes: float, tenant: str, body: str = "one", queue: str = "orders") -> None:
    tenants = {"tenant": {"DataType": "String", "StringValue": tenant}}
    found = Message.parse({"MessageId": f"m{number}", "Body": body, "MessageAttributes": tenants})
    at = datetime.now(UTC) - timedelta(minutes=minutes)
    S3KeptMessages(lambda: boto3.client("s3"), "lake").put(kept_batch(QueueName(queue), [found], at=at))


def test_filters_are_tried_on_the_kept_messages_of_a_queue(splits, tmp_path):
    boto3.client("s3").create_bucket(Bucket="lake")
    for number, minutes in ((1, 200), (2, 5), (2, 4), (3, 3)):
        _kept(number, minutes=minutes, tenant="acme")
    _kept(4, minutes=2, tenant="other", body="two")
    _kept(5, minutes=1, tenant="other")
    _kept(6, minutes=-1, tenant="acme")
    (tmp_path / "sessions.json").write_text(json.dumps(SESSIONS))
    given = ["split", "explain", "--over", "2h", "--queue", "orders", "--sessions", str(tmp_path / "sessions.json")]

    shown = ran(*given, "--picture", str(tmp_path / "a.svg")).stdout
    document = json.loads(ran(*given, "--json").stdout)

    lines = shown.splitlines()
    assert lines[0] == "orders: 3 messages of 4 kept in the last 2h match a filter"
    rows = [line.split() for line in lines]
    assert any(row[:5] == ["ann", "would", "get", "2", "message_filter.tenant:"] for row in rows)
    assert any(row[:5] == ["bob", "would", "get", "a", "copy"] for row in rows)
    assert ["deployed", "would", "get", "2", "no", "session", "matches"] in rows
    assert (document["kept"], document["matched"]) == (4, 3)
    assert [(one["message"], one["owner"]) for one in document["decisions"]][:2] == [("m2", "ann"), ("m3", "ann")]
    assert "3 messages of 4" in (tmp_path / "a.svg").read_text()


@pytest.mark.parametrize(("queue", "in_sqs"), [("jobs", "idle-queue"), ("q_ann.b", sqs_name("q_ann.b"))])
def test_kept_messages_are_found_by_the_name_that_sessions_or_the_exchange_give_the_queue(
    splits, tmp_path, queue, in_sqs
):
    boto3.client("s3").create_bucket(Bucket="lake")
    _kept(1, minutes=5, tenant="acme", queue=in_sqs)
    session = {"session": "ann", "queues": {queue: {"message_filter": {"tenant": "^a"}}}}
    (tmp_path / "sessions.json").write_text(json.dumps([session]))
    given = ["split", "explain", "--over", "2h", "--sessions", str(tmp_path / "sessions.json"), "--json"]

    document = json.loads(ran(*given, "--queue", queue).stdout)

    assert (document["kept"], document["matched"]) == (1, 1)


def test_a_queue_without_kept_messages_names_the_command_that_keeps_them(splits, tmp_path):
    boto3.client("s3").create_bucket(Bucket="lake")
    (tmp_path / "sessions.json").write_text(json.dumps(SESSIONS))

    shown = ran("split", "explain", "--over", "2h", "--queue", "q", "--sessions", str(tmp_path / "sessions.json"))

    assert shown.stdout == "q: no message was kept in the last 2h; `signalbox keep set` keeps those to come\n"


def test_more_kept_messages_than_an_answer_has_are_refused(splits, tmp_path, monkeypatch):
    boto3.client("s3").create_bucket(Bucket="lake")
    monkeypatch.setattr("signalbox.cli.splitting.kept_past.MAXIMUM_KEPT", 1)
    for number in (1, 2):
        _kept(number, minutes=5 - number, tenant="acme")
    (tmp_path / "sessions.json").write_text(json.dumps(SESSIONS))

    with pytest.raises(RejectedError, match="ask about a shorter one"):
        ran("split", "explain", "--over", "2h", "--queue", "orders", "--sessions", str(tmp_path / "sessions.json"))
