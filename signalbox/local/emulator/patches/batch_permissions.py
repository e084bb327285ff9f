"""Patch: the permissions that AWS requires for batches of messages and for Athena queries.

- AWS allows `SendMessageBatch`, `DeleteMessageBatch` and `ChangeMessageVisibilityBatch` with the permission for one
  message. MiniStack requires a permission with the batch's own name, which does not exist in IAM.
- AWS checks the permission to read a query on the query's workgroup. MiniStack does not look up the query and requires
  the permission on all resources.
"""

from collections.abc import Callable, Iterable

from signalbox.local.emulator.patches.patch import Patch, original

ENFORCE = "ministack.core.iam_evaluator:enforce"
ACCOUNT_ID = "ministack.core.responses:get_account_id"

BATCHES = {
    f"sqs:{action}Batch": f"sqs:{action}" for action in ("SendMessage", "DeleteMessage", "ChangeMessageVisibility")
}
QUERY_ACTIONS = ("athena:GetQueryExecution", "athena:GetQueryResults")
WORK_GROUPS = "ministack.services.athena:_workgroups"
PRIMARY = "primary"


def with_aws_permissions(
    enforce: Callable[..., object], account_id: Callable[[], str], work_groups: Iterable[str]
) -> Callable[..., object]:
    """Return an `enforce` that checks the action and the resource that AWS checks.

    All queries of a stage belong to its workgroup; the emulator's only other one is `primary`.
    """

    def enforce_as_aws(
        access_key_id: str, iam_action: str, service: str, region: str, *others: object, **named: object
    ) -> object:
        if iam_action in QUERY_ACTIONS:
            work_group = next((name for name in work_groups if name != PRIMARY), PRIMARY)
            named["resource_arn"] = f"arn:aws:athena:{region}:{account_id()}:workgroup/{work_group}"
        return enforce(access_key_id, BATCHES.get(iam_action, iam_action), service, region, *others, **named)

    return enforce_as_aws


PATCH = Patch(
    sources={ENFORCE: "cf64b1ee5b099c8f", ACCOUNT_ID: "0204876c26f772b9"},
    replacements=lambda: {
        ENFORCE: with_aws_permissions(original(ENFORCE), original(ACCOUNT_ID), original(WORK_GROUPS))
    },
)
