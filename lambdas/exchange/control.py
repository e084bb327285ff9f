"""Obeys commands from the control queues, of which each says who asks, and deletes what is due by the schedule."""

import logging
from typing import Any

from lambdas.exchange import control_wiring, wiring
from lambdas.shared.commands import CommandProcessor
from signalbox.control.envelope import Commands, Envelope
from signalbox.errors import RejectedError
from signalbox.exchange.control import commands as exchange_commands
from signalbox.exchange.control.command_handlers import ExchangeDesk
from signalbox.exchange.control.command_reader import COMMANDS
from signalbox.exchange.control.expiry import Expiring
from signalbox.live.admin import commands
from signalbox.live.admin.command_handlers import LiveCommandHandlers
from signalbox.sarracenia.rights.names import UserName

KNOWN: Commands[exchange_commands.Command | commands.Command] = {**COMMANDS, **commands.COMMANDS}
EXPIRE, STRAYS = "expire", "strays"

logger = logging.getLogger(__name__)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Return the commands that stay in flight; for a task of the schedule, how many queues it deleted."""
    if "Records" in event:
        processor = CommandProcessor(_answer, control_wiring.replies(), control_wiring.dead_letters(), _reply_prefix)
        return processor.process(event["Records"])
    if event["task"] == EXPIRE:
        return {"deleted": _delete_expired()}
    if event["task"] == STRAYS:
        return {"deleted": _delete_strays()}
    raise RejectedError(f"unknown task {event['task']!r}; known: {EXPIRE}, {STRAYS}")


def _answer(record: dict[str, Any], envelope: Envelope) -> object:
    command = envelope.command(KNOWN)
    if isinstance(command, commands.Command):
        return LiveCommandHandlers(control_wiring.granting()).answer(_user(record), command)
    return ExchangeDesk(control_wiring.ports()).answer(_user(record), command)


def _reply_prefix(record: dict[str, Any]) -> str:
    return wiring.names().reply_prefix(_user(record))


def _user(record: dict[str, Any]) -> UserName | None:
    # Whoever may send there is that user; what a message says of its sender is nothing.
    return wiring.names().user_of(record["eventSourceARN"].rpartition(":")[2])


def _delete_expired() -> int:
    deleted = Expiring(control_wiring.ports()).delete_expired()
    for queue in deleted:
        logger.info("queue %r has expired and is deleted", queue.name)
    return len(deleted)


def _delete_strays() -> int:
    sweep = control_wiring.sweep()
    deleted = [*sweep.delete_strays(), *sweep.delete_reply_queues()]
    for name in deleted:
        logger.warning("stray queue %s is deleted", name)
    return len(deleted)
