"""Permissions of the schedules' roles: each may start its one target."""

from collections.abc import Iterable, Mapping

from stacks.grants.permissions import allow, allow_key
from stacks.history.job import HistoryJob
from stacks.shared.schedules import Schedules, Task
from stacks.state_stack import StateStack


def grant_schedules(
    schedules: Schedules, *, tasks: Mapping[str, Task], jobs: Iterable[HistoryJob], state: StateStack
) -> None:
    """Let each role invoke its one target, and send failed invocations to the dead-letter queue."""
    for name, function in {task.role_name: task.function for task in tasks.values()}.items():
        allow(schedules.roles[name], ["lambda:InvokeFunction"], [function.function_arn])
    for job in jobs:
        for name in job.definition.schedules:
            allow(schedules.roles[name], ["glue:StartJobRun"], [job.job.job_arn])
    for role in schedules.roles.values():
        allow(role, ["sqs:SendMessage"], [schedules.dead_letters.queue_arn])
        allow_key(role, state.queue_key, service="sqs")
