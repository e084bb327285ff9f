"""Declarations of a connection: sent once, awaited together, bindings last."""

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from amqp.exceptions import PreconditionFailed

from signalbox.control.protocol import CommandRejected
from signalbox.kombu.stage import Declarations


class Control:
    """A fake of a control client that records what is sent and awaited."""

    def __init__(self) -> None:
        self.journal: list[str] = []
        self.rejected: set[str] = set()
        self._ids, self._commands = count(), dict[str, str]()

    def send(self, command: str, fields: Any) -> str:
        name = fields.get("pattern") or fields.get("queue") or fields.get("exchange")
        request_id = str(next(self._ids))
        self._commands[request_id] = f"{command} {name}"
        self.journal.append(f"> {command} {name}")
        return request_id

    def result(self, request_id: str) -> None:
        self.journal.append(f"< {self._commands[request_id]}")
        if self._commands[request_id] in self.rejected:
            raise CommandRejected("no")


@pytest.fixture
def control() -> Control:
    return Control()


@pytest.fixture
def declarations(control: Control) -> Declarations:
    return Declarations(SimpleNamespace(control=control, ask=lambda *_: None))  # type: ignore[arg-type]


def declare(declarations: Declarations) -> None:
    declarations.send("declare_exchange", {"exchange": "xs", "alternate": None})
    declarations.send("declare_queue", {"queue": "q"})
    declarations.bind({"exchange": "xs", "queue": "q", "pattern": "a.#"})


def test_two_round_trips_declare_everything_and_none_declares_it_again(control, declarations):
    declare(declarations)
    declare(declarations)

    assert control.journal == [
        *("> declare_exchange xs", "> declare_queue q", "< declare_exchange xs", "< declare_queue q"),
        *("> bind a.#", "< bind a.#"),
    ]
    assert declarations.knows("q")
    assert not declarations.knows("a.#")


def test_a_queue_that_expires_is_declared_and_bound_again(control, declarations):
    for _ in range(2):
        declarations.send("declare_exchange", {"exchange": "xs"})
        declarations.send("declare_queue", {"queue": "q", "expires_seconds": 60})
        declarations.bind({"exchange": "xs", "queue": "q", "pattern": "a"})

    sent = [one for one in control.journal if one.startswith(">")]
    assert sent == ["> declare_exchange xs", *2 * ("> declare_queue q", "> bind a")]


def test_a_rejected_declaration_is_raised_and_sent_again(control, declarations):
    control.rejected = {"declare_queue q"}
    with pytest.raises(PreconditionFailed, match="no"):
        declare(declarations)

    control.rejected, control.journal = set(), []
    declare(declarations)

    assert control.journal == ["> declare_queue q", "< declare_queue q", "> bind a.#", "< bind a.#"]


def test_after_a_deletion_everything_is_declared_again(control, declarations):
    declare(declarations)
    declarations.ask("delete_queue", {"queue": "q"})
    control.journal.clear()

    declare(declarations)

    assert len(control.journal) == 6
