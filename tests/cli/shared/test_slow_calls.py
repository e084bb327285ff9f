"""A command on a terminal says that it waits if its first call takes long and it has printed nothing."""

import io
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest

from signalbox.cli.shared import slow_calls
from signalbox.cli.shared.deployment import announce
from signalbox.cli.shared.slow_calls import SlowCalls
from signalbox.cli.shared.stage import say
from signalbox.clients.deployment import local_deployment
from tests.cli.test_main import LOCAL

LINE = "· waiting for the local stage of /home/me\n"


class Terminal(io.StringIO):
    """A terminal that remembers when something is printed."""

    def __init__(self, *, is_terminal: bool = True) -> None:
        super().__init__()
        self.is_terminal = is_terminal
        self.printed = Event()

    def isatty(self) -> bool:
        return self.is_terminal

    def flush(self) -> None:
        self.printed.set()


class Events(dict):
    """The handlers that a session registers, by event."""

    def register(self, name: str, handler: object) -> None:
        self[name] = handler


@pytest.fixture
def terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(slow_calls, "sys", SimpleNamespace(stderr=terminal))
    monkeypatch.setattr(slow_calls, "PATIENCE", 0)
    return terminal


@pytest.fixture
def events():
    return Events()


def test_a_call_without_a_response_is_announced_once(terminal, events):
    calls = SlowCalls()
    calls.announce(events, "the local stage of /home/me")

    for _ in range(2):
        events["before-send"](request=None)
        assert terminal.printed.wait(10)
        events["response-received"](response_dict={})

    assert terminal.getvalue() == LINE


def test_a_call_whose_response_is_there_is_not_announced(terminal, events, monkeypatch):
    monkeypatch.setattr(slow_calls, "PATIENCE", 3600)
    calls = SlowCalls()
    calls.announce(events, "the stage")

    events["before-send"](request=None)
    timer = calls._timer
    events["response-received"](response_dict={})
    timer.join(60)

    assert not timer.is_alive()
    assert terminal.getvalue() == ""


def test_nothing_is_announced_after_another_line(terminal, events, monkeypatch):
    calls = SlowCalls()
    monkeypatch.setattr("signalbox.cli.shared.stage.SLOW_CALLS", calls)
    calls.announce(events, "the stage")

    say("reading the history")
    events["before-send"](request=None)

    assert calls._timer is None
    assert terminal.getvalue() == ""


def test_nothing_is_announced_where_standard_error_is_no_terminal(terminal, events):
    terminal.is_terminal = False

    SlowCalls().announce(events, "the stage")

    assert events == {}


def test_the_calls_of_a_stage_are_announced_with_its_place(terminal, monkeypatch):
    calls = SlowCalls()
    monkeypatch.setattr("signalbox.cli.shared.deployment.SLOW_CALLS", calls)
    deployment = local_deployment(LOCAL, folder=Path("/home/me/.signalbox"), watch=announce)
    client = deployment.session().client("sqs")

    client.meta.events.emit("before-send.sqs.ListQueues", request=None)
    assert terminal.printed.wait(10)
    client.meta.events.emit("response-received.sqs.ListQueues", response_dict={})

    assert terminal.getvalue() == LINE
