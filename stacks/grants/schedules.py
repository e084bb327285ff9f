"""Permissions of the role of schedules: it may start their targets, and nothing else."""

from collections.abc import Iterable, Mapping

from stacks.grants.permissions import allow, allow_key
from stacks.history.job import HistoryJob
from stacks.shared.schedules import Schedules, Task
from stacks.state_stack import State


def grant_schedules(
    schedules: Schedules, *, tasks: Mapping[str, Task], jobs: Iterable[HistoryJob] = (), state: State
) -> None:
    """Let the role start the targets, and send failed invocations to the dead-letter queue."""
    functions = dict.fromkeys(task.function.function_arn for task in tasks.values())
    started = [job.job.job_arn for job in jobs if job.definition.schedules]
    if functions:
        allow(schedules.role, ["lambda:InvokeFunction"], [*functions])
    if started:
        allow(schedules.role, ["glue:StartJobRun"], started)
    allow(schedules.role, ["sqs:SendMessage"], [schedules.dead_letters.queue_arn])
    allow_key(schedules.role, state.key, service="sqs")
