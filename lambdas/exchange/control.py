"""The function `control`: executes commands of the control queues, and scheduled deletions."""

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from lambdas.exchange import control_wiring, wiring
from lambdas.shared import guarding, instance
from lambdas.shared.commands import CommandProcessor
from signalbox.aws.shared.telemetry import measure_oldest_message
from signalbox.control.delivery import CommandDelivery, UnprovenSender
from signalbox.control.envelope import Commands, Envelope
from signalbox.errors import RejectedError
from signalbox.exchange.control import commands as exchange_commands
from signalbox.exchange.control.caller import prove_sender
from signalbox.exchange.control.command_reader import COMMANDS
from signalbox.exchange.control.scheduled_tasks import (
    BacklogService,
    ExpiryService,
    disconnect_unused_retries,
    queue_sources,
)
from signalbox.exchange.model.connections import FunctionArn
from signalbox.exchange.model.events import CAPABILITY
from signalbox.live.admin import command_reader, commands
from signalbox.sarracenia.rights.names import InvalidUserName, UserName
from signalbox.task_time import TaskTime

KNOWN: Commands[exchange_commands.Command | commands.Command] = {**COMMANDS, **command_reader.COMMANDS}
MAINTAIN, STRAYS, MEASURE = "maintain", "strays", "measure"

logger = logging.getLogger(__name__)


class NoLive(RejectedError):
    """Raised for commands about realms on a stage without live."""


class TaskContext(Protocol):
    """The context of Lambda that the scheduled tasks use."""

    @property
    def invoked_function_arn(self) -> str:
        """Return the ARN of this function."""

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until Lambda stops this call."""


def handler(event: dict[str, Any], context: TaskContext) -> dict[str, Any]:
    """Return the commands to redeliver; for a scheduled task, the numbers of its results."""
    if "Records" in event:
        processor = CommandProcessor(
            _caller, _answer, wiring.names().reply_queue, control_wiring.replies(), control_wiring.dead_letters()
        )
        return processor.process(event["Records"])
    if "ResponseURL" in event:
        from lambdas.exchange import deployment  # noqa: PLC0415 - only the stacks of CDK apps send such requests

        deployment.answer(event, _execute, until=instance.task_time(context).until)
        return {}
    if event["task"] == MAINTAIN:
        return _maintain(context)
    if event["task"] == STRAYS:
        return {"deleted": _delete_strays(instance.task_time(context))}
    if event["task"] == MEASURE:
        return _measure(instance.task_time(context))
    raise RejectedError(f"unknown task {event['task']!r}; known: {MAINTAIN}, {STRAYS}, {MEASURE}")


def _caller(record: dict[str, Any], sender_id: str) -> UserName | None:
    # Permission to send to the queue identifies the user; claims within a message do not count.
    try:
        user = wiring.names().user_of(record["eventSourceARN"].rpartition(":")[2])
    except InvalidUserName as error:
        raise UnprovenSender(str(error)) from error
    router_id = instance.settings().text("ROUTE_ROLE_ID")
    sent_at = CommandDelivery.of(record["attributes"]).sent_at
    prove_sender(control_wiring.ports().store.users, user, sender_id=sender_id, router_id=router_id, sent_at=sent_at)
    return user


def _answer(user: UserName | None, envelope: Envelope) -> object:
    command = envelope.command(KNOWN)
    live = command.live if isinstance(command, exchange_commands.DeclareExchange) else None
    if not wiring.has_live() and isinstance(command, commands.ForgetUser):
        return {"user": command.user, "ended": [], "notified_sessions": 0}
    needs_live = isinstance(command, commands.Command) or (live is not None and not live.ends)
    if needs_live and not wiring.has_live():
        raise NoLive("the stage has no live exchanges: deploy it with live in the setting `capabilities`")
    if isinstance(command, commands.Command):
        return control_wiring.live_commands().answer(user, command, delivery=envelope.delivery)
    answer = control_wiring.exchange_service().answer(user, command, delivery=envelope.delivery)
    if isinstance(command, exchange_commands.DeclareExchange) and live is not None and wiring.has_live():
        control_wiring.rights_notices().end_refused(command.exchange)
    return answer


def _maintain(context: TaskContext) -> dict[str, Any]:
    time = instance.task_time(context)
    try:
        done = _connect(FunctionArn(context.invoked_function_arn), until=time.half().until)
    finally:
        deleted = _delete_expired(time)
    return {"deleted": deleted, **done}


def _execute(fields: Mapping[str, object]) -> object:
    return _answer(None, Envelope("", wants_reply=False, fields=fields))


def _delete_expired(time: TaskTime) -> int:
    deleted = list(ExpiryService(control_wiring.ports()).delete_expired(time))
    for queue in deleted:
        logger.info("queue %r has expired and is deleted", queue.name)
    return len(deleted)


def _delete_strays(time: TaskTime) -> int:
    guarding.restrict(control_wiring.redrive_policies(), queue_sources(control_wiring.ports()), time.half())
    disconnect_unused_retries(control_wiring.ports())
    for part in time.half().parts([user.name for user in control_wiring.ports().store.users.every()]):
        for user, reason in control_wiring.user_queues().make_reply_queues(part, control_wiring.tags()).items():
            logger.warning("user %s has no reply queue: %s", user, reason)
    deleted = list(control_wiring.sweep().delete_strays(time))
    for name in deleted:
        logger.warning("stray queue %s is deleted", name)
    return len(deleted)


def _connect(control: FunctionArn, *, until: datetime) -> dict[str, Any]:
    done = control_wiring.reconnection(control).check_when_due(until=until)
    for queue in done.connected:
        logger.warning("queue %s is connected to the function that reads it now", queue)
    for problem in done.problems:
        logger.error("a queue is not connected: %s", problem)
    return {"connected": len(done.connected), "disconnected": len(done.disconnected), "complete": done.is_complete}


def _measure(time: TaskTime) -> dict[str, Any]:
    oldest = BacklogService(control_wiring.ports()).oldest(time.half())
    if oldest is not None:
        measure_oldest_message(oldest, capability=CAPABILITY, stage=wiring.names().stage)
    return {
        "oldest_seconds": None if oldest is None else oldest.total_seconds(),
        "dead_letters": control_wiring.dead_letter_service().record_new(time) if instance.has_history() else 0,
    }
