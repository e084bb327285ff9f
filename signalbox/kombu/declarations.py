"""Declarations of a connection: each is sent to the stage once, and an exchange is awaited with its first queue."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.clients.exchange.client import ExchangeClient
from signalbox.errors import SignalboxError
from signalbox.kombu.errors import amqp_errors

Declaration = tuple[tuple[str, object], ...]
"""A command and its fields."""


@dataclass(slots=True)
class Declarations:
    """Sends commands, and no declaration twice, except of queues that expire. Raises errors of AMQP. Thread-safe."""

    client: ExchangeClient
    _known: set[Declaration] = field(default_factory=set)
    _expiring: set[object] = field(default_factory=set)
    _sent: dict[str, Declaration] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def send(self, command: str, fields: Mapping[str, object]) -> None:
        """Send a declaration that `settle` awaits; a field of value None is left out."""
        given = {name: value for name, value in fields.items() if value is not None}
        declaration = (("command", command), *given.items())
        if "expires_seconds" in given:
            self._expiring.add(given["queue"])  # it may be gone when it is declared again
        with self._lock, amqp_errors(command):
            if declaration not in self._known or given.get("queue") in self._expiring:
                self._sent[self.client.control.send(command, given)] = declaration
                self._known.add(declaration)

    def bind(self, fields: Mapping[str, object]) -> None:
        """Declare a binding of what was sent before."""
        self.settle()
        self.send("bind", fields)
        self.settle()

    def knows(self, name: str) -> bool:
        """Return whether this connection declared an exchange or a queue of a name of the stage."""
        with self._lock:
            return any(name in (value for _field, value in one[:2]) for one in self._known)

    def settle(self) -> None:
        """Wait until everything that was sent exists. Raises the first error."""
        with self._lock, amqp_errors("declare"):
            errors: list[Exception] = []
            sent, self._sent = self._sent, {}
            for request_id, declaration in sent.items():
                try:
                    self.client.control.result(request_id)
                except (SignalboxError, BotoCoreError, ClientError) as error:
                    self._known.discard(declaration)
                    errors.append(error)
            if errors:
                raise errors[0]

    def ask(self, command: str, fields: Mapping[str, object]) -> Any:
        """Return the result of a command after all declarations; one that deletes makes them unknown."""
        with self._lock, amqp_errors(command):
            self.settle()
            if command.startswith(("delete", "unbind")):
                self._known.clear()
            return self.client.ask(command, fields)
