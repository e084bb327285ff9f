"""The attributes that temporary queues copy."""

import json

import pytest

from signalbox.queues import QueueName
from signalbox.splitting.queues.queue_attributes import (
    Clone,
    OriginalDeadLetterQueue,
    cloned,
    cloned_policy,
    redrive_refusal,
)

ORIGINAL, NAME = QueueName("memes"), QueueName("mirrord-tmp-1-memes")
ARN = "arn:aws:sqs:eu-north-1:314159265359"
DEAD_LETTERS = f"{ARN}:memes-dead"
REFUSED = f"no dead-letter queue: {DEAD_LETTERS} does not accept messages from temporary queues"
REDRIVE = {
    "QueueArn": f"{ARN}:memes",
    "RedrivePolicy": json.dumps({"deadLetterTargetArn": DEAD_LETTERS, "maxReceiveCount": 5}),
}


OWN = {"MessageRetentionPeriod": "1209600", "RedriveAllowPolicy": '{"redrivePermission": "denyAll"}'}


def clone(attributes: dict[str, str], tags: dict[str, str] | None = None, **options: object) -> Clone:
    given = {"configured_tags": {}, "own_tags": {}, "dead_letter_queue": OriginalDeadLetterQueue(), **options}
    return cloned(attributes, tags or {}, original=ORIGINAL, name=NAME, **given)


def test_attributes_are_copied_except_those_unique_to_the_original():
    """Wire page, A.4: attributes cloned."""
    copied = {
        "VisibilityTimeout": "45",
        "MaximumMessageSize": "1048576",
        "ReceiveMessageWaitTimeSeconds": "20",
        "SqsManagedSseEnabled": "true",
        "FifoQueue": "true",
        "ContentBasedDeduplication": "false",
        "DeduplicationScope": "messageGroup",
        "FifoThroughputLimit": "perMessageGroupId",
    }
    own = {
        "QueueArn": f"{ARN}:memes",
        "ApproximateNumberOfMessages": "7",
        "CreatedTimestamp": "1",
        "DelaySeconds": "3",
        "MessageRetentionPeriod": "60",
        "RedriveAllowPolicy": '{"redrivePermission":"byQueue","sourceQueueArns":["arn:source"]}',
        "Policy": "",
    }

    assert clone(copied | own) == Clone(copied | OWN, {}, ())


def test_a_customer_managed_key_is_copied():
    attributes = {
        "KmsMasterKeyId": "alias/memes",
        "KmsDataKeyReusePeriodSeconds": "300",
        "SqsManagedSseEnabled": "false",
    }

    copied = {"KmsMasterKeyId": "alias/memes", "KmsDataKeyReusePeriodSeconds": "300"}
    assert clone(attributes).attributes == copied | OWN


def test_only_the_queue_name_in_the_policy_is_replaced():
    """mirrord's sqs.md: the same policy, with the single change of updating the queue name."""
    statement = {
        "Sid": "memes",
        "Effect": "Allow",
        "Principal": {"AWS": "arn:aws:iam::314159265359:role/memes"},
        "Action": "sqs:*",
        "Resource": [f"{ARN}:memes", f"{ARN}:memes-dead", f"{ARN}:my-memes", "/314159265359/memes", "*"],
        "Condition": {"ArnEquals": {"aws:SourceArn": "arn:aws:sns:eu-north-1:314159265359:memes"}},
    }
    expected = statement | {
        "Resource": [f"{ARN}:{NAME}", f"{ARN}:memes-dead", f"{ARN}:my-memes", f"/314159265359/{NAME}", "*"]
    }
    policy = {"Version": "2012-10-17", "Id": "memes", "Statement": [statement, {"NotResource": f"{ARN}:memes"}]}

    replaced = json.loads(clone({"Policy": json.dumps(policy)}).attributes["Policy"])

    assert replaced == {**policy, "Statement": [expected, {"NotResource": f"{ARN}:{NAME}"}]}


def test_a_policy_may_have_one_statement_or_none():
    one = cloned_policy(json.dumps({"Statement": {"Resource": f"{ARN}:memes"}}), original=ORIGINAL, name=NAME)

    assert json.loads(one) == {"Statement": {"Resource": f"{ARN}:{NAME}"}}
    assert cloned_policy("{}", original=ORIGINAL, name=NAME) == "{}"
    odd = cloned_policy('{"Statement":[{"Resource":7}]}', original=ORIGINAL, name=NAME)
    assert odd == '{"Statement":[{"Resource":7}]}'


@pytest.mark.parametrize(
    ("dead_letter_queue", "refusal"),
    [
        (OriginalDeadLetterQueue(), None),
        (OriginalDeadLetterQueue('{"redrivePermission":"allowAll"}'), None),
        (
            OriginalDeadLetterQueue(json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [f"{ARN}:{NAME}"]})),
            None,
        ),
        (
            OriginalDeadLetterQueue(json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": [f"{ARN}:memes"]})),
            f"{REFUSED} (redrivePermission byQueue)",
        ),
        (
            OriginalDeadLetterQueue('{"redrivePermission":"denyAll"}'),
            f"{REFUSED} (redrivePermission denyAll)",
        ),
        (
            OriginalDeadLetterQueue(unreadable="AccessDenied"),
            f"no dead-letter queue: the redrive allow policy of {DEAD_LETTERS} cannot be read (AccessDenied)",
        ),
    ],
    ids=["default", "all", "listed", "not listed", "none", "unreadable"],
)
def test_the_dead_letter_queue_is_copied_if_it_accepts_the_queue(dead_letter_queue, refusal):
    """Wire page, A.4: CreateQueue with a refused dead-letter queue fails."""
    made = clone(REDRIVE, dead_letter_queue=dead_letter_queue)

    assert made.notes == ((refusal,) if refusal else ())
    assert ("RedrivePolicy" in made.attributes) is (refusal is None)


def test_a_queue_without_a_dead_letter_queue_has_no_refusal():
    assert redrive_refusal({}, name=NAME, dead_letter_queue=OriginalDeadLetterQueue(unreadable="no")) is None


def test_own_tags_override_configured_ones_which_override_the_originals():
    made = clone(
        {},
        {"team": "a", "tool": "x", "owner": "x", "aws:cloudformation:stack-name": "memes"},
        configured_tags={"tool": "mirrord", "owner": "y"},
        own_tags={"owner": "ann"},
    )

    assert made.tags == {"team": "a", "tool": "mirrord", "owner": "ann"}


def test_surplus_tags_are_left_out_and_reported():
    made = clone({}, {f"t{number}": "" for number in range(50)}, own_tags={"owner": "ann", "t0": "ours"})

    assert len(made.tags) == 50
    assert made.tags["t0"] == "ours"
    assert made.notes == ("a queue has at most 50 tags; left out: t49",)
