"""Patch: a function whose log group was deleted does not make it again, as on AWS without `logs:CreateLogGroup`.

A function may run while its stack is deleted. MiniStack makes the log group at the end of each run, whatever the role
of the function permits, so that groups are left of a stage that is gone.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original

LOG = "ministack.services.lambda_svc:_emit_lambda_logs"
GROUPS = "ministack.services.cloudwatch_logs:_log_groups"


def logging_where_possible(log: Callable[..., None], groups: Collection[str]) -> Callable[..., None]:
    """Return a `log` of a run that drops the log of a function whose own log group does not exist.

    Without one of its own, a function has the group that Lambda makes for it.
    """

    def log_if_possible(function: Mapping[str, Any], *others: object, **named: object) -> None:
        config = function.get("config") or function
        group = (config.get("LoggingConfig") or {}).get("LogGroup")
        if group in (None, f"/aws/lambda/{config['FunctionName']}") or group in groups:
            log(function, *others, **named)

    return log_if_possible


# `cloudwatch_metrics`, which is applied before, has the digest of the same function.
PATCH = Patch(sources={}, replacements=lambda: {LOG: logging_where_possible(original(LOG), original(GROUPS))})
