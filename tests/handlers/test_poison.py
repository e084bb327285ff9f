"""Poison: what its content does to the process that reads it, and nothing else, makes a message poison."""

import os
import resource
import signal
import time
from typing import Any

import pytest

from lambdas.shared import poison
from lambdas.shared.poison import SUSPECT_RECEIVES, poison_of
from signalbox.errors import RejectedError


def records(*bodies: str, received: int = SUSPECT_RECEIVES) -> list[dict[str, Any]]:
    return [
        {"messageId": body, "body": body, "attributes": {"ApproximateReceiveCount": str(received)}} for body in bodies
    ]


def _loop() -> None:
    while True:
        pass


def _fail(error: BaseException) -> None:
    raise error


ORDERS = {
    "loop": _loop,
    "wait": lambda: time.sleep(600),
    "memory": lambda: bytearray(1024**3),
    "defect": lambda: _fail(KeyError("defect")),
    "invalid": lambda: _fail(RejectedError("invalid")),
    "exit": lambda: _fail(SystemExit(0)),
}


def read(record: dict[str, Any]) -> None:
    """Execute the order in the body."""
    body = record["body"]
    if body.startswith("SIG"):
        os.kill(os.getpid(), signal.Signals[body])
    ORDERS.get(body, lambda: None)()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("loop", "reading it takes more than 0.5 s of processor time"),
        ("memory", "reading it fails by an error of the program, or needs too much memory"),
        ("defect", "reading it fails by an error of the program, or needs too much memory"),
        ("exit", "reading it fails by an error of the program, or needs too much memory"),
        ("SIGSEGV", "reading it ends the process with SIGSEGV"),
        ("SIGABRT", "reading it ends the process with SIGABRT"),
    ],
)
def test_a_message_that_stops_its_reader_is_found_among_others(body, reason):
    assert poison_of(records("a", body, "b"), read) == {body: reason}


@pytest.mark.parametrize("body", ["fine", "invalid"])
def test_a_message_that_can_be_read_or_refused_is_no_poison_however_often_it_was_received(body):
    assert poison_of(records(body, received=100_000), read) == {}


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT", "SIGALRM"])
def test_a_killed_reader_proves_nothing(name):
    assert poison_of(records(name), read) == {}


@pytest.mark.parametrize("received", [1, 4, 6, 9, 101])
def test_a_message_is_read_alone_at_every_fifth_receive_only(received):
    assert poison_of(records("SIGSEGV", received=received), read) == {}


def test_a_reader_that_waits_proves_nothing_and_is_ended(monkeypatch):
    monkeypatch.setattr(poison, "LONGEST_SECONDS", 0.1)

    assert poison_of(records("wait"), read) == {}


def test_a_machine_without_room_for_a_process_proves_nothing(monkeypatch):
    def full() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", full)

    assert poison_of(records("SIGSEGV"), read) == {}


def test_the_reader_of_suspects_limits_only_itself():
    before = resource.getrlimit(resource.RLIMIT_AS), signal.getitimer(signal.ITIMER_PROF)

    poison_of(records("fine"), read)

    assert (resource.getrlimit(resource.RLIMIT_AS), signal.getitimer(signal.ITIMER_PROF)) == before
