"""Permissions of the schedules' roles: each may start its one target."""

from collections.abc import Iterable, Mapping

from stacks.grants.permissions import allow, allow_key
from stacks.history.job import HistoryJob
from stacks.shared.schedules import Schedules, Task
from stacks.state_stack import State


def grant_schedules(
    schedules: Schedules, *, tasks: Mapping[str, Task], jobs: Iterable[HistoryJob] = (), state: State
) -> None:
    """Let each role invoke its one target, and send failed invocations to the dead-letter queue."""
    started = {task.role_name: ("lambda:InvokeFunction", task.function.function_arn) for task in tasks.values()}
    started |= {name: ("glue:StartJobRun", job.job.job_arn) for job in jobs for name in job.definition.schedules}
    for name, (action, target) in started.items():
        role = schedules.roles[name]
        allow(role, [action], [target])
        allow(role, ["sqs:SendMessage"], [schedules.dead_letters.queue_arn])
        allow_key(role, state.key, service="sqs")
