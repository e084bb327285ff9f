"""Patch: a `RedriveAllowPolicy` decides which queues may use a queue as their dead-letter queue, as on AWS.

MiniStack stores the policy and ignores it, does not know ListDeadLetterSourceQueues, and leaves the source of a moved
message out of the events of functions.
"""

import json
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original

SQS = "ministack.services.sqs"
HANDLERS, QUEUES, FIND, ERROR = f"{SQS}:_HANDLERS", f"{SQS}:_queues", f"{SQS}:_queue_by_arn", f"{SQS}:_Err"
CREATE, SET = f"{SQS}:_act_create_queue", f"{SQS}:_act_set_queue_attributes"
QUEUE, ACCOUNT, REGION = f"{SQS}:_get_q", f"{SQS}:get_account_id", f"{SQS}:get_region"
RUN = "ministack.services.lambda_svc:_run_sqs_batch"
SOURCE = "DeadLetterQueueSourceArn"

Request = Mapping[str, Any]
Queue = Mapping[str, Any]
Act = Callable[[Request, str], dict[str, Any]]


def is_allowed(source_arn: str, allow_policy: str | None) -> bool:
    """Return whether a queue with this `RedriveAllowPolicy` takes the dead letters of a source."""
    policy = json.loads(allow_policy or "{}")
    permission = policy.get("redrivePermission", "allowAll")
    if permission == "byQueue":
        return source_arn in policy.get("sourceQueueArns", [])
    return bool(permission == "allowAll")


def target_of(redrive_policy: str | None) -> str | None:
    """Return the ARN of the dead-letter queue in a `RedrivePolicy`, or None without one."""
    if not redrive_policy:
        return None
    target: str = json.loads(redrive_policy)["deadLetterTargetArn"]
    return target


def enforcing(
    act: Act,
    source_arn: Callable[[Request, str], str],
    find: Callable[[str], Queue | None],
    *,
    refuse: Callable[[str, str], Exception],
) -> Act:
    """Return an `act` that refuses a `RedrivePolicy` which the dead-letter queue's `RedriveAllowPolicy` excludes."""

    def act_if_allowed(request: Request, url: str) -> dict[str, Any]:
        redrive = (request.get("Attributes") or {}).get("RedrivePolicy")
        target = _readable_target(redrive)
        queue = find(target) if target else None
        if queue is not None and not is_allowed(
            source_arn(request, url), queue["attributes"].get("RedriveAllowPolicy")
        ):
            text = f"Value {redrive} for parameter RedrivePolicy is invalid. Reason: "
            raise refuse(
                "InvalidParameterValue", f"{text}the dead-letter queue's RedriveAllowPolicy excludes this source queue."
            )
        return act(request, url)

    return act_if_allowed


def sources_of(queue: Queue, queues: Mapping[str, Queue]) -> dict[str, list[str]]:
    """Return the answer of ListDeadLetterSourceQueues: the URLs of the queues whose dead letters a queue takes."""
    arn = queue["attributes"]["QueueArn"]
    return {
        "queueUrls": [
            url for url, one in list(queues.items()) if _readable_target(one["attributes"].get("RedrivePolicy")) == arn
        ]
    }


def with_sources_in_events(run: Callable[..., object]) -> Callable[..., object]:
    """Return a `run` of a function with messages that copies the sources of moved ones into the event's records."""

    def run_with_sources(
        mapping: object,
        function: object,
        event: MutableMapping[str, Any],
        batch: Sequence[Queue],
        *others: object,
        **named: object,
    ) -> object:
        sources = {one["id"]: one["sys"][SOURCE] for one in batch if SOURCE in one.get("sys", {})}
        for record in event["Records"]:
            if record["messageId"] in sources:
                record["attributes"][SOURCE] = sources[record["messageId"]]
        return run(mapping, function, event, batch, *others, **named)

    return run_with_sources


def _readable_target(redrive_policy: str | None) -> str | None:
    # MiniStack refuses what cannot be read, with its own message.
    try:
        return target_of(redrive_policy)
    except (ValueError, TypeError, KeyError):
        return None


def _replacements() -> Mapping[str, object]:
    handlers, error = original(HANDLERS), original(ERROR)

    def arn_of_new(request: Request, _url: str) -> str:
        return f"arn:aws:sqs:{original(REGION)()}:{original(ACCOUNT)()}:{request.get('QueueName')}"

    def arn_of_existing(request: Request, url: str) -> str:
        queue = original(QUEUE)(request.get("QueueUrl", url), "sqs:SetQueueAttributes")
        arn: str = queue["attributes"]["QueueArn"]
        return arn

    def list_sources(request: Request, url: str) -> dict[str, list[str]]:
        queue = original(QUEUE)(request.get("QueueUrl", url), "sqs:ListDeadLetterSourceQueues")
        return sources_of(queue, original(QUEUES))

    def checked(action: str, source_arn: Callable[[Request, str], str]) -> Act:
        return enforcing(handlers[action], source_arn, original(FIND), refuse=lambda code, text: error(code, text, 400))

    return {
        HANDLERS: {
            **handlers,
            "CreateQueue": checked("CreateQueue", arn_of_new),
            "SetQueueAttributes": checked("SetQueueAttributes", arn_of_existing),
            "ListDeadLetterSourceQueues": list_sources,
        },
        RUN: with_sources_in_events(original(RUN)),
    }


PATCH = Patch(
    sources={CREATE: "5f6e8f364cd9e78a", SET: "c7a502e07f5ee102", FIND: "b4981875c8186c19"}, replacements=_replacements
)
