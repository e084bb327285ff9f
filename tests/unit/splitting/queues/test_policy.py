"""The minimal policy: mirrord's permissions, those for returning messages, and nothing more."""

from dataclasses import replace

import pytest

from signalbox.queues import QueueName
from signalbox.splitting.queues.policy import USE_TEMPORARY_QUEUES, InvalidPolicy, QueueTag, Splittable, policy_document

ARNS = "arn:aws:sqs:eu-west-1:123456789012:"
BY_NAME = Splittable(ARNS, queues=(QueueName("memes"), QueueName("memes.fifo")))
BY_TAG = Splittable(ARNS, tag=QueueTag("splittable", "yes"))


def statements(splittable: Splittable) -> dict[str, dict[str, object]]:
    return {one["Sid"]: one for one in policy_document(splittable)["Statement"]}


def test_originals_are_read_by_their_names() -> None:
    """mirrord, docs: sqs.md, the operator's policy."""
    assert statements(BY_NAME)["ReadOriginals"] == {
        "Sid": "ReadOriginals",
        "Effect": "Allow",
        "Action": [
            "sqs:GetQueueUrl",
            "sqs:GetQueueAttributes",
            "sqs:ListQueueTags",
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
        ],
        "Resource": [f"{ARNS}memes", f"{ARNS}memes.fifo"],
    }


def test_temporary_queues_are_matched_by_their_prefix() -> None:
    found = statements(replace(BY_NAME, prefix="split-"))["UseTemporaryQueues"]

    assert found["Resource"] == [f"{ARNS}split-*"]
    assert found["Action"] == [
        "sqs:CreateQueue",
        "sqs:TagQueue",
        "sqs:SendMessage",
        "sqs:GetQueueAttributes",
        "sqs:DeleteQueue",
        "sqs:SetQueueAttributes",
        "sqs:ListDeadLetterSourceQueues",
    ]


def test_unconsumed_messages_can_be_returned() -> None:
    """mirrord loses these messages, and so needs no permission for it."""
    found = statements(BY_NAME)

    assert found["ReturnIntoOriginals"]["Action"] == ["sqs:SendMessage"]
    assert found["ReturnIntoOriginals"]["Resource"] == [f"{ARNS}memes", f"{ARNS}memes.fifo"]
    assert found["ReturnFromTemporaryQueues"]["Action"] == [
        "sqs:ReceiveMessage",
        "sqs:DeleteMessage",
        "sqs:ListQueueTags",
    ]
    assert found["ReturnFromTemporaryQueues"]["Resource"] == [f"{ARNS}mirrord-*"]


def test_originals_can_be_selected_by_a_tag() -> None:
    found = statements(BY_TAG)

    assert set(found) == {
        "ReadOriginalsByTag",
        "UseTemporaryQueues",
        "ReturnIntoOriginalsByTag",
        "ReturnFromTemporaryQueues",
    }
    for name in ("ReadOriginalsByTag", "ReturnIntoOriginalsByTag"):
        assert found[name]["Resource"] == [f"{ARNS}*"]
        assert found[name]["Condition"] == {"StringEquals": {"aws:ResourceTag/splittable": "yes"}}


def test_names_and_a_tag_allow_both() -> None:
    assert {"ReadOriginals", "ReadOriginalsByTag"} < set(statements(replace(BY_NAME, tag=BY_TAG.tag)))


def test_dead_letter_queues_are_only_described() -> None:
    found = statements(replace(BY_NAME, dead_letter_queues=(QueueName("dead"),)))["ReadDeadLetterQueues"]

    assert (found["Action"], found["Resource"]) == (["sqs:GetQueueAttributes"], [f"{ARNS}dead"])


def test_keys_are_used_through_sqs_alone() -> None:
    key = "arn:aws:kms:eu-west-1:123456789012:key/k"

    found = statements(replace(BY_NAME, key_arns=(key,)))["UseKeys"]

    assert found["Action"] == ["kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey"]
    assert found["Resource"] == [key]
    assert found["Condition"] == {"StringEquals": {"kms:ViaService": "sqs.eu-west-1.amazonaws.com"}}


def test_a_policy_without_keys_has_no_kms_statement() -> None:
    assert "UseKeys" not in statements(BY_NAME)


def test_no_action_is_a_pattern() -> None:
    whole = replace(BY_NAME, tag=BY_TAG.tag, dead_letter_queues=(QueueName("dead"),), key_arns=("k",))

    assert not [action for one in statements(whole).values() for action in one["Action"] if "*" in action]


def test_all_problems_are_reported_together() -> None:
    with pytest.raises(InvalidPolicy) as raised:
        policy_document(replace(BY_NAME, queues=(QueueName("a b"), QueueName("*")), dead_letter_queues=("",)))

    assert [text in str(raised.value) for text in ("'a b'", "'*'", "0 characters")] == [True, True, True]


def test_a_policy_that_allows_nothing_is_refused() -> None:
    with pytest.raises(InvalidPolicy, match="neither a queue nor a tag"):
        policy_document(Splittable(ARNS))


def test_a_tag_is_written_as_in_the_settings() -> None:
    assert QueueTag.parse("splittable=a=b") == QueueTag("splittable", "a=b")


@pytest.mark.parametrize("text", ["splittable", "=yes", ""])
def test_half_a_tag_is_refused(text: str) -> None:
    with pytest.raises(InvalidPolicy, match="expected KEY=VALUE"):
        QueueTag.parse(text)


def test_temporary_queues_can_be_limited_by_a_tag_that_they_are_created_with() -> None:
    """mirrord, docs: sqs.md, on the second statement; SQS' condition keys: sqs-abac-condition-keys.html."""
    found = statements(replace(BY_TAG, temporary_tag=QueueTag("tool", "split")))

    of_request, of_queue = {"aws:RequestTag/tool": "split"}, {"aws:ResourceTag/tool": "split"}
    assert {name: (one["Action"], one["Condition"]) for name, one in found.items() if "Temporary" in name} == {
        "CreateTemporaryQueuesByTag": (
            ["sqs:CreateQueue", "sqs:TagQueue"],
            {"StringEquals": of_request, "StringEqualsIfExists": of_queue},
        ),
        "UseTemporaryQueuesByTag": ([*USE_TEMPORARY_QUEUES], {"StringEquals": of_queue}),
        "ReturnFromTemporaryQueuesByTag": (
            ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ListQueueTags"],
            {"StringEquals": of_queue},
        ),
    }
    assert all(one["Resource"] == [f"{ARNS}mirrord-*"] for name, one in found.items() if "Temporary" in name)


def test_a_tag_of_temporary_queues_changes_no_permission_but_their_condition() -> None:
    def actions(splittable: Splittable) -> set[tuple[str, str]]:
        found = statements(splittable).values()
        return {(action, resource) for one in found for action in one["Action"] for resource in one["Resource"]}

    assert actions(replace(BY_TAG, temporary_tag=QueueTag("tool", "split"))) == actions(BY_TAG)
