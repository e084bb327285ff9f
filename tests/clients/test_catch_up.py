"""The page and the example clients request and deliver by the cases that all clients share."""

import asyncio
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from signalbox.local import tools
from signalbox.local.files import CHECKOUT
from tests.cases import catch_up

FOLDER = Path(__file__).parent
EXAMPLES = CHECKOUT / "examples" / "clients"
PAGE_EVENTS = 2
SECONDS = 600  # Go compiles its standard library on the first run


def run(*command: str, folder: Path = CHECKOUT) -> None:
    done = subprocess.run(  # noqa: S603 - our own programs
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS, env=os.environ
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_catches_up() -> None:
    module = CHECKOUT / "web" / "subscription.js"

    run(str(tools.node()), str(FOLDER / "catch_up.mjs"), "page", str(catch_up.FILE), str(module))


def test_the_page_goes_on_without_past_events_that_are_too_many() -> None:
    run(str(tools.node()), str(FOLDER / "omit_past.mjs"), str(CHECKOUT / "web" / "wamp.js"), str(catch_up.FILE))


@pytest.fixture
def javascript(tmp_path: Path) -> str:
    """The example in JavaScript, with a stand-in for Autobahn whose connection tests open and close."""
    autobahn = tmp_path / "node_modules" / "autobahn"
    autobahn.mkdir(parents=True)
    (autobahn / "package.json").write_text('{"type": "module", "main": "index.js"}')
    connection = "class { constructor() { globalThis.connection = this; } open() {} }"
    (autobahn / "index.js").write_text(f"export default {{ Connection: {connection} }};")
    for name in ("signalbox_live.js", "package.json"):
        shutil.copy(EXAMPLES / "javascript" / name, tmp_path)
    return str(tmp_path / "signalbox_live.js")


def test_the_javascript_example_catches_up(javascript: str) -> None:
    run(str(tools.node()), str(FOLDER / "catch_up.mjs"), "example", str(catch_up.FILE), javascript)


def test_the_javascript_example_keeps_an_idle_connection_open(javascript: str) -> None:
    run(str(tools.node()), str(FOLDER / "keep_alive.mjs"), javascript)


@pytest.mark.release
def test_the_go_example_catches_up() -> None:
    # By their names, the files are compiled without the WebSocket library that the rest of the package imports.
    run(str(tools.go()), "test", "-vet=off", "cursor.go", "cursor_test.go", folder=EXAMPLES / "go" / "live")


@pytest.mark.release
def test_the_ruby_example_catches_up() -> None:
    ruby = shutil.which("ruby")
    if ruby is None:
        pytest.skip("the example in Ruby is not tested: Ruby is not on PATH (Debian: ruby ruby-websocket-driver)")
    probe = [ruby, "-e", 'require "websocket/driver"']
    if subprocess.run(probe, capture_output=True, check=False).returncode:  # noqa: S603 - Ruby itself
        pytest.skip("the example in Ruby is not tested: websocket-driver is missing (Debian: ruby-websocket-driver)")

    run(ruby, str(FOLDER / "catch_up.rb"), str(catch_up.FILE), str(EXAMPLES / "ruby" / "signalbox_live.rb"))


@pytest.fixture(scope="module")
def library() -> Iterator[ModuleType]:
    """The Python example, which needs Autobahn only to connect."""
    stubs = ("autobahn.asyncio.component", "autobahn.wamp.exception", "autobahn.wamp.types")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("autobahn", "autobahn.asyncio", "autobahn.wamp", *stubs):
            patch.setitem(sys.modules, name, MagicMock())
        spec = importlib.util.spec_from_file_location("signalbox_live", EXAMPLES / "python" / "signalbox_live.py")
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module


@pytest.mark.parametrize("case", catch_up.cases(), ids=lambda case: case["name"])
def test_the_python_example_catches_up(library: ModuleType, case: dict[str, Any]) -> None:
    given, delivered = case["subscription"], list[int]()
    clock = SimpleNamespace(at="")
    subscription = library.Subscription(
        given["topic"],
        lambda event: delivered.append(event.publication),
        match=given["match"],
        last=given["last"],
        latest=given["retained"],
        now=lambda: datetime.fromisoformat(clock.at),
    )

    for connection in case["connections"]:
        procedure = Procedure(connection)
        live = list(catch_up.expanded(connection.get("live", [])))
        clock.at = connection["joined_at"]
        subscription.begin()
        _deliver(subscription, connection.get("retained", []), retained=True)
        _deliver(subscription, live[:1] if connection["is_caught_up"] else [])  # overtakes the history
        try:
            asyncio.run(subscription.catch_up(procedure.call, 1))
        except ConnectionError:
            assert not connection["is_caught_up"]
        clock.at = connection.get("live_at", clock.at)
        _deliver(subscription, live)
        requested = connection["requested"]
        catch_up.check_request(procedure.request, requested.get("by_procedure", requested["by_publication"]))

    assert delivered == catch_up.delivered(case, "by_procedure")


@pytest.mark.parametrize("goodbye", catch_up.goodbyes(), ids=lambda one: one["reason"])
def test_the_python_example_ends_with_a_goodbye(
    library: ModuleType, monkeypatch: pytest.MonkeyPatch, goodbye: dict[str, str]
) -> None:
    monkeypatch.setattr(library, "ApplicationError", Refused)
    failures = list[str]()
    live = library.Live(url="ws://x/", realm="x.fifo", user="ann", ticket="t", failed=failures.append)

    assert live._is_refused(Refused(goodbye["reason"], goodbye["message"]))
    assert failures == [goodbye["message"]]


def test_the_python_example_delivers_live_events_after_a_history_that_is_refused(
    library: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "ApplicationError", Refused)
    monkeypatch.setattr(library, "CHECK_SECONDS", 60)
    failures, delivered = list[str](), list[int]()
    live = library.Live(url="ws://x/", realm="x.fifo", user="ann", ticket="t", failed=failures.append)
    live.follow("trial.log", lambda event: delivered.append(event.publication), last=3)
    (subscription,) = live.subscriptions
    event = {"topic": "trial.log", "publication": 1}

    asyncio.run(live._joined(RefusingSession(lambda: _deliver(subscription, [event])), None))
    _deliver(subscription, [{**event, "publication": 2}])

    assert (failures, delivered) == (["trial.log: too many past events"], [1, 2])


@dataclass
class RefusingSession:
    """A session that refuses history, before which a live event arrives."""

    receive: Callable[[], None]

    async def subscribe(self, *_: Any) -> Any:
        return SimpleNamespace(id=7)

    async def call(self, *_: Any, **query: Any) -> None:
        self.receive()
        raise Refused("wamp.error.payload_size_exceeded", "too many past events")

    def is_attached(self) -> bool:
        return False


class Refused(Exception):
    """An error of WAMP, as Autobahn raises it."""

    def __init__(self, error: str, message: str = "") -> None:
        super().__init__(error)
        self.error, self.message = error, message

    def error_message(self) -> str:
        return self.message


class Lost(Exception):
    """A lost connection, as Autobahn raises it."""


@pytest.mark.parametrize(
    ("outcomes", "reported"),
    [
        ([None, None, Refused("wamp.error.no_such_subscription")], ["trial.log: the right to it was revoked"]),
        ([None, Refused("wamp.error.invalid_argument"), Lost()], []),
        ([None, "left"], []),
    ],
    ids=["revoked", "connection lost", "session left"],
)
def test_the_python_example_notices_a_revoked_right(
    library: ModuleType, monkeypatch: pytest.MonkeyPatch, outcomes: list[Any], reported: list[str]
) -> None:
    monkeypatch.setattr(library, "ApplicationError", Refused)
    monkeypatch.setattr(library, "TransportLost", Lost)
    monkeypatch.setattr(library, "CHECK_SECONDS", 0)
    failures = list[str]()
    live = library.Live(url="ws://x/", realm="x.fifo", user="ann", ticket="t", failed=failures.append)
    session = CheckedSession(outcomes)

    asyncio.run(live.check(session, "trial.log", 7))

    assert failures == reported
    assert session.outcomes == []


@dataclass
class CheckedSession:
    """A session that answers each check with the next outcome; `left` ends it."""

    outcomes: list[Any]

    def is_attached(self) -> bool:
        return bool(self.outcomes)

    async def call(self, procedure: str, subscription: int, **query: Any) -> None:
        assert (procedure, subscription, query) == ("wamp.subscription.get_events", 7, {"limit": 1})
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome


def _deliver(subscription: Any, events: Iterable[Any], *, retained: bool = False) -> None:
    for event in events:
        details = SimpleNamespace(topic=event["topic"], publication=event["publication"], retained=retained)
        subscription.received(details=details)


class Procedure:
    """Answers `wamp.subscription.get_events` with the past of a connection; `request` is the first query."""

    def __init__(self, connection: dict[str, Any]) -> None:
        self.events = list(catch_up.expanded(connection["past"]))
        self.is_complete = connection["is_caught_up"]
        self.request: Any = None

    async def call(self, procedure: str, subscription: int, **query: Any) -> Any:
        assert (procedure, subscription) == ("wamp.subscription.get_events", 1)
        if self.request is None:
            self.request = _plain(query)
        if not self.is_complete:
            raise ConnectionError
        size = len(self.events) if "limit" in query else PAGE_EVENTS
        page, self.events = self.events[:size], self.events[size:]
        results = [{"publication": one["publication"], "details": {"topic": one["topic"]}} for one in page]
        return SimpleNamespace(
            results=results[::-1] if query.get("reverse") else results, kwresults={"more": bool(self.events)}
        )


def _plain(query: dict[str, Any]) -> dict[str, Any]:
    """Return a query in the form of the `_history` option."""
    if query.get("reverse"):
        return {"last": query["limit"]}
    if "from_time" in query:
        return {"after": query["from_time"].replace("+00:00", "Z")}
    return query
