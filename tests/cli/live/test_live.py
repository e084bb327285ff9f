"""The commands `signalbox tail` and `watch`, against a router in memory."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from signalbox.cli.live.commands import changes, fields
from signalbox.cli.main import app
from signalbox.clients.live.session import ConnectionLost, JoinRefused, RequestRefused
from signalbox.errors import RejectedError
from signalbox.live.wamp.messages import Payload
from tests.fakes.live_router import REALM, TICKET, Router, running

DEADLINE_SECONDS = 20
LOCAL = {
    "outputs": {},
    "region": "us-east-1",
    "rendezvous_url": "http://127.0.0.1:1/",
    "endpoint_url": "http://127.0.0.1:1",
    "admin_credentials": {},
    "realm": REALM,
    "live_users": [{"name": "alice", "ticket": TICKET, "role": "subscriber"}],
}


@pytest.fixture
def router(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Router]:
    """A live router, and the state of a local stage in the folder where commands run."""
    with running() as router:
        write_local(tmp_path, websocket_url=router.url)
        monkeypatch.chdir(tmp_path)
        for name in ("TICKET", "USER", "REALM"):
            monkeypatch.delenv(f"SIGNALBOX_{name}", raising=False)
        yield router


def write_local(folder: Path, **changed: object) -> None:
    (folder / ".signalbox").mkdir(exist_ok=True)
    (folder / ".signalbox" / "local.json").write_text(json.dumps({**LOCAL, **changed}))


def signalbox(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def printed(result: Result) -> list[dict[str, object]]:
    assert result.exception is None, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def when(condition: Callable[[], bool], act: Callable[[], object]) -> threading.Thread:
    """Run an action in a thread as soon as a condition holds."""

    def wait() -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.01)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


# --- tail


def test_the_past_is_printed_oldest_first(router):
    for number in range(12):
        router.publish("trial.log", f"line {number}\n")

    result = signalbox("tail", "trial.log", "--no-follow")

    assert result.exit_code == 0
    assert [line.split("  ")[1:] for line in result.stdout.splitlines()] == [
        [f"#{number + 1}", f"line {number}"] for number in range(2, 12)
    ]


def test_json_has_every_field_of_an_event(router):
    logged = router.publish("trial.log", 1, "two", level="info")

    (one,) = printed(signalbox("tail", "trial.log", "--no-follow", "--json"))

    assert datetime.fromisoformat(str(one.pop("at"))) == logged.at.replace(
        microsecond=logged.at.microsecond // 1000 * 1000
    )
    assert one == {
        "topic": "trial.log",
        "sequence": 1,
        "publication": logged.publication,
        "args": [1, "two"],
        "kwargs": {"level": "info"},
        "headers": {},
        "retained": False,
        "omitted_bytes": None,
    }


def test_a_line_has_arguments_and_keywords(router):
    router.publish("trial.log", 1, {"a": "ü"}, level="info")

    assert signalbox("tail", "trial.log", "--no-follow").stdout.endswith('  1 {"a": "ü"} level=info\n')


@pytest.mark.parametrize(("since", "count"), [("1h", 1), ("2001-01-01T00:00:00Z", 1), ("2999-01-01T00:00:00Z", 0)])
def test_past_events_since_a_time_are_printed(router, since, count):
    router.publish("trial.log", 1)

    assert len(printed(signalbox("tail", "trial.log", "--since", since, "--no-follow", "--json"))) == count


def test_a_lost_connection_is_reported_and_no_event_is_missed(router):
    router.publish("trial.log", 0)

    def cut() -> None:
        router.cut()
        router.publish("trial.log", 1)
        router.publish("trial.log", 2)

    thread = when(lambda: router.subscriptions() == 1, cut)
    result = signalbox("tail", "trial.log", "--max", "3", "--json")
    thread.join()

    assert [one["args"] for one in printed(result)] == [[0], [1], [2]]
    assert "the connection was lost and is restored" in result.stderr


def test_events_that_are_no_longer_kept_are_counted(router):
    router.publish("trial.log", 0)

    def lose() -> None:
        with router.paused():
            router.cut()
            for number in range(1, 4):
                router.publish("trial.log", number)
            router.forget("trial.log", 3)

    thread = when(lambda: router.subscriptions() == 1, lose)
    result = signalbox("tail", "trial.log", "--max", "2")
    thread.join()

    assert "2 before #4 of trial.log are no longer kept, or not visible to this user" in result.stderr


def test_a_signal_ends_the_command_with_exit_code_0(router):
    thread = when(lambda: router.subscriptions() == 1, lambda: os.kill(os.getpid(), signal.SIGTERM))
    result = signalbox("tail", "trial.log")
    thread.join()

    assert (result.exit_code, result.stdout) == (0, "")


def test_a_line_names_its_topic_only_where_topics_may_differ(router):
    router.publish("trial.log", "line")

    of_topic = signalbox("tail", "trial.log", "--no-follow").stdout
    thread = when(lambda: router.subscriptions() == 1, lambda: router.publish("trial.log", "line"))
    of_prefix = signalbox("tail", "trial.", "--match", "prefix", "--max", "1").stdout
    thread.join()

    assert of_topic.split("  ")[1:] == ["#1", "line\n"]
    assert of_prefix.split("  ")[1:] == ["trial.log #1", "line\n"]


def test_an_event_that_is_too_large_is_printed_without_its_payload(router):
    router.publish("trial.log", "x" * 200_000)

    assert "bytes, too large for a message)" in signalbox("tail", "trial.log", "--no-follow").stdout


def test_new_events_follow_past_ones_that_are_refused_as_too_many(router):
    def refuse_and_publish() -> None:
        router.refuse_past("trial.log")
        when(lambda: router.subscriptions() == 1, lambda: router.publish("trial.log", "line")).join()

    thread = when(lambda: router.subscriptions() == 1, refuse_and_publish)
    result = signalbox("tail", "trial.log", "--max", "1")
    thread.join()

    assert result.stdout.split("  ")[1:] == ["#1", "line\n"]
    assert "'trial.log' goes on without past events: too many" in result.stderr


# --- watch


def test_a_record_is_printed_as_its_latest_state_and_then_its_changes(router):
    router.publish("trial.record", {"state": "Queued", "cost": 0}, retain=True)
    router.publish("trial.record", {"state": "Running", "cost": 0, "node": "n1"}, retain=True)

    thread = when(
        lambda: router.subscriptions() == 1, lambda: router.publish("trial.record", {"state": "Complete", "cost": 2})
    )
    result = signalbox("watch", "trial.record", "--max", "2")
    thread.join()

    lines = [line if line.startswith("  ") else line.split("  ")[1] for line in result.stdout.splitlines()]
    assert lines == [
        *("trial.record #2", "  state: Running", "  cost: 0", "  node: n1"),
        *("trial.record #3", "  state: Running → Complete", "  cost: 0 → 2", "  node: n1 → -"),
    ]


@pytest.mark.parametrize(
    ("payload", "state"),
    [
        (Payload(({"a": 1},), {"b": 2}), {"a": 1, "b": 2}),
        (Payload((5,)), {"value": 5}),
        (Payload((5, 6)), {"value": [5, 6]}),
        (Payload(), {}),
    ],
)
def test_every_payload_is_a_state(payload, state):
    assert fields(payload) == state


def test_an_unchanged_field_is_not_printed():
    assert list(changes({"a": 1}, {"a": 1})) == []


# --- the stage, the realm and the user


def test_a_ticket_may_come_from_the_environment(router, monkeypatch):
    router.rights["bob"] = router.rights["alice"]
    router.publish("trial.log", 1)
    monkeypatch.setenv("SIGNALBOX_TICKET", TICKET)

    assert len(printed(signalbox("tail", "trial.log", "--user", "bob", "--no-follow", "--json"))) == 1


def test_a_ticket_may_be_typed_in(router, monkeypatch):
    router.rights["bob"] = router.rights["alice"]
    monkeypatch.setattr("signalbox.cli.shared.confirmation.is_terminal", lambda: True)

    result = CliRunner().invoke(app, ["tail", "trial.log", "--user", "bob", "--no-follow"], input=f"{TICKET}\n")

    assert result.exit_code == 0
    assert TICKET not in result.output


def test_a_user_may_come_from_the_environment_with_the_ticket(router, monkeypatch):
    router.rights["bob"] = router.rights["alice"]
    router.publish("trial.log", 1)
    monkeypatch.setenv("SIGNALBOX_USER", "bob")
    monkeypatch.setenv("SIGNALBOX_TICKET", TICKET)
    monkeypatch.setenv("SIGNALBOX_REALM", REALM)

    assert len(printed(signalbox("tail", "trial.log", "--no-follow", "--json"))) == 1


def test_a_ticket_in_the_environment_is_not_sent_for_another_user(router, monkeypatch):
    monkeypatch.setenv("SIGNALBOX_TICKET", "the ticket of another user")

    result = signalbox("tail", "trial.log", "--no-follow")

    assert isinstance(result.exception, RejectedError)
    assert "SIGNALBOX_TICKET is set, but not its user: set SIGNALBOX_USER too" in str(result.exception)


def test_a_topic_without_events_is_named_with_its_realm(router):
    result = signalbox("tail", "trial.lgo", "--no-follow")

    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith(f"· nothing yet on 'trial.lgo' of {REALM}")


def test_a_mistyped_topic_is_answered_with_the_nearest(router):
    router.procedures["signalbox.topics"] = lambda _: Payload(([{"topic": "trial.log"}, {"topic": "trial.other"}],))

    result = signalbox("tail", "trial.lgo", "--no-follow")

    assert result.stderr == f"· nothing yet on 'trial.lgo' of {REALM}; did you mean 'trial.log'?\n"


def test_a_pattern_without_events_is_named_with_its_kind(router):
    result = signalbox("tail", "trial.", "--match", "prefix", "--no-follow")

    assert result.stderr.startswith(f"· nothing yet on prefix 'trial.' of {REALM}")


def test_without_a_ticket_the_error_names_the_command_that_creates_one(router):
    result = signalbox("tail", "trial.log", "--user", "bob")

    assert isinstance(result.exception, RejectedError)
    assert "`signalbox user secret bob` creates one" in str(result.exception)


@pytest.mark.parametrize(
    ("words", "error", "text"),
    [
        (["tail", "other.log"], RequestRefused, "may not subscribe"),
        (["tail", "trial.log", "--exchange", "no.fifo"], JoinRefused, "there is no such realm"),
        (["tail", "trial.log", "--last", "1", "--since", "5m"], RejectedError, "exclude each other"),
        (["tail", "trial.log", "--since", "yesterday"], RejectedError, "--since"),
        (["tail", "a b"], RejectedError, "white space"),
    ],
)
def test_invalid_requests_are_refused_with_the_reason(router, words, error, text):
    result = signalbox(*words)

    assert isinstance(result.exception, error)
    assert text in str(result.exception)


@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        ({"websocket_url": ""}, RejectedError, "the stage has no output 'LiveWebSocketUrl'"),
        (
            {"websocket_url": "", "outputs": {"Capabilities": "exchange"}},
            RejectedError,
            "the stage has no live: its capabilities are exchange; deploy capabilities=exchange,live",
        ),
        ({"realm": "", "live_users": []}, RejectedError, "--exchange and --user must be given"),
        ({"websocket_url": "ws://127.0.0.1:1/"}, ConnectionLost, "no connection to the live router"),
        ({"websocket_url": "http://127.0.0.1:1/"}, RejectedError, "is not a WebSocket URL"),
    ],
)
def test_a_stage_that_cannot_be_joined_is_refused_with_the_reason(router, tmp_path, changed, error, text):
    write_local(tmp_path, **{"websocket_url": router.url, **changed})

    result = signalbox("tail", "trial.log")

    assert isinstance(result.exception, error)
    assert text in str(result.exception)


def test_a_mistyped_realm_is_answered_with_the_nearest(router, tmp_path, monkeypatch):
    write_local(tmp_path, websocket_url=router.url)
    monkeypatch.setattr("signalbox.cli.live.sign_in.fetch_json", lambda _: {"realms": ["xtrial.fifo", "xs_bob.fifo"]})

    result = signalbox("tail", "trial.log", "--exchange", "xtrail.fifo")

    assert isinstance(result.exception, JoinRefused)
    assert str(result.exception).endswith("; did you mean 'xtrial.fifo'?")


@pytest.mark.parametrize(
    ("refusal", "answer", "error"),
    [
        ((400, "why"), "400: why", RejectedError),
        ((429, "a storm"), "429: a storm", ConnectionLost),
        ((429, ""), "429: Too Many Requests", ConnectionLost),  # API Gateway need not pass a text on
        ((503, "why"), "503: why", ConnectionLost),
    ],
)
def test_a_refused_connection_is_reported_with_its_reason(router, tmp_path, refusal, answer, error):
    router.refuse_with = refusal

    result = signalbox("tail", "trial.log")

    assert isinstance(result.exception, error)
    assert f"answers {answer}" in str(result.exception)
