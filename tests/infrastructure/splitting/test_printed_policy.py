"""The policy that `signalbox split policy` prints, judged by IAM's rules: tags of originals and of temporary queues."""

import pytest

from signalbox.splitting.queues.policy import QueueTag, Splittable, policy_document
from tests.infrastructure.simulation import Call, allowed

ARNS = "arn:aws:sqs:us-east-1:123456789012:"
PRINCIPAL = "arn:aws:iam::123456789012:user/operator"
BY_TAGS = Splittable(ARNS, tag=QueueTag("splittable", "yes"), temporary_tag=QueueTag("tool", "split"))
SPLITTABLE, LOCKED = {"aws:ResourceTag/splittable": "yes"}, {"aws:ResourceTag/splittable": "no"}
OURS, THEIRS = {"aws:ResourceTag/tool": "split"}, {"aws:ResourceTag/tool": "other"}
TAGGING, TAGGING_OTHERWISE = {"aws:RequestTag/tool": "split"}, {"aws:RequestTag/tool": "other"}
TEMPORARY, ORIGINAL = "mirrord-tmp-orders", "orders"
READING = ("GetQueueUrl", "GetQueueAttributes", "ListQueueTags", "ReceiveMessage", "DeleteMessage", "SendMessage")
USING = (
    *("SendMessage", "GetQueueAttributes", "DeleteQueue", "ReceiveMessage", "DeleteMessage", "ListQueueTags"),
    *("SetQueueAttributes", "ListDeadLetterSourceQueues"),
)
CREATING = ("CreateQueue", "TagQueue")
# Actions, the queue, the condition keys of the calls, and whether they are allowed.
CALLS = {
    "originals with the tag": (READING, ORIGINAL, SPLITTABLE, True),
    "originals with another value": (READING, ORIGINAL, LOCKED, False),
    "originals without it": (READING, ORIGINAL, {}, False),
    "originals with the tag of temporary queues": (READING, ORIGINAL, OURS, False),
    "temporary queues with the tag": (USING, TEMPORARY, OURS, True),
    "temporary queues with another value": (USING, TEMPORARY, THEIRS, False),
    "temporary queues without it": (USING, TEMPORARY, {}, False),
    "other queues with the tag": (USING, "other", OURS, False),
    "creation with the tag": (CREATING, TEMPORARY, TAGGING, True),
    "creation with another value": (CREATING, TEMPORARY, TAGGING_OTHERWISE, False),
    "creation without it": (CREATING, TEMPORARY, {}, False),
    "creation of other queues": (CREATING, "other", TAGGING, False),
    "a temporary queue tagged again": (("TagQueue",), TEMPORARY, TAGGING | OURS, True),
    "a queue of others taken over": (("TagQueue",), TEMPORARY, TAGGING | THEIRS, False),
    "what no split needs": (("PurgeQueue", "AddPermission", "UntagQueue"), TEMPORARY, OURS | SPLITTABLE, False),
    "changes of originals": (("DeleteQueue", "SetQueueAttributes", "TagQueue"), ORIGINAL, SPLITTABLE | TAGGING, False),
}


def calls(splittable: Splittable, what: str) -> list[Call]:
    actions, queue, context, _ = CALLS[what]
    policy = policy_document(splittable)
    return [Call(PRINCIPAL, [policy], f"sqs:{action}", ARNS + queue, context=context) for action in actions]


@pytest.fixture(scope="module")
def verdicts() -> dict[str, set[bool]]:
    """Return the verdicts on each kind of calls, judged in one run of the simulator."""
    made = {what: calls(BY_TAGS, what) for what in CALLS}
    found = iter(allowed(call for of_kind in made.values() for call in of_kind))
    return {what: {next(found) for _ in of_kind} for what, of_kind in made.items()}


@pytest.mark.parametrize("what", CALLS)
def test_both_statements_are_limited_by_their_tags(verdicts, what):
    assert verdicts[what] == {CALLS[what][-1]}


def test_without_the_tag_the_prefix_alone_limits_temporary_queues():
    by_prefix = Splittable(ARNS, tag=BY_TAGS.tag)

    assert set(allowed(calls(by_prefix, "temporary queues without it"))) == {True}
    assert set(allowed(calls(by_prefix, "other queues with the tag"))) == {False}
