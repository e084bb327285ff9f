"""The minimal IAM policy for splitting queues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from signalbox.errors import RejectedError
from signalbox.queues import FIFO_SUFFIX, InvalidQueueName, QueueName, parse_queue_name
from signalbox.splitting.queues.names import DEFAULT_PREFIX

# mirrord's documentation lists these. It loses the messages that a session leaves; returning them needs the others.
READ_ORIGINALS = (
    "sqs:GetQueueUrl",
    "sqs:GetQueueAttributes",
    "sqs:ListQueueTags",
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
)
CREATE_TEMPORARY_QUEUES = ("sqs:CreateQueue", "sqs:TagQueue")
USE_TEMPORARY_QUEUES = (
    *("sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:DeleteQueue"),
    *("sqs:SetQueueAttributes", "sqs:ListDeadLetterSourceQueues"),  # the sweep refuses the dead letters of strangers
)
RETURN_INTO_ORIGINALS = ("sqs:SendMessage",)
RETURN_FROM_TEMPORARY_QUEUES = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ListQueueTags")
READ_DEAD_LETTER_QUEUES = ("sqs:GetQueueAttributes",)
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-abac-condition-keys.html
OF_QUEUE, OF_REQUEST = "aws:ResourceTag", "aws:RequestTag"
USE_KEYS = ("kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey")


class InvalidPolicy(RejectedError):
    """Raised when a policy would allow nothing, or names impossible queues or tags."""


@dataclass(frozen=True, slots=True)
class QueueTag:
    """A tag that marks queues which may be split, or temporary queues."""

    key: str
    value: str

    @classmethod
    def parse(cls, text: str) -> "QueueTag":
        """Return the tag in `key=value`. Raises `InvalidPolicy`."""
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise InvalidPolicy(f"tag {text!r} has no value; expected KEY=VALUE")
        return cls(key, value)

    def condition(self, kind: str) -> dict[str, str]:
        """Return the condition that a key of this kind, `aws:ResourceTag` or `aws:RequestTag`, has the value."""
        return {f"{kind}/{self.key}": self.value}


@dataclass(frozen=True, slots=True)
class Splittable:
    """The queues that may be split, by name or by tag, and their related resources.

    `arn_prefix` is a queue's ARN up to its name. `dead_letter_queues` are those of the originals; a temporary queue has
    none if the `RedriveAllowPolicy` of the dead-letter queue cannot be read. `key_arns` are the keys of encrypted
    queues. Temporary queues are limited by their prefix and, if it is given, by `temporary_tag`, which registries set.
    """

    arn_prefix: str
    queues: tuple[QueueName, ...] = ()
    tag: QueueTag | None = None
    dead_letter_queues: tuple[QueueName, ...] = ()
    key_arns: tuple[str, ...] = ()
    prefix: str = DEFAULT_PREFIX
    temporary_tag: QueueTag | None = None


def policy_document(splittable: Splittable) -> dict[str, object]:
    """Return the policy document for forwarding messages and managing temporary queues.

    Raises `InvalidPolicy` with all problems.
    """
    _check(splittable)
    statements = [
        *_on_originals("ReadOriginals", READ_ORIGINALS, splittable),
        *_on_temporary_queues(splittable),
        *_on_originals("ReturnIntoOriginals", RETURN_INTO_ORIGINALS, splittable),
        _returned_from(splittable),
    ]
    if splittable.dead_letter_queues:
        arns = _arns(splittable, splittable.dead_letter_queues)
        statements.append(_allowed("ReadDeadLetterQueues", READ_DEAD_LETTER_QUEUES, arns))
    if splittable.key_arns:
        statements.append(_allowed("UseKeys", USE_KEYS, splittable.key_arns, _through_sqs(splittable)))
    return {"Version": "2012-10-17", "Statement": statements}


def _check(splittable: Splittable) -> None:
    problems = [problem for name in (*splittable.queues, *splittable.dead_letter_queues) for problem in _problems(name)]
    if not (splittable.queues or splittable.tag):
        problems.append("neither a queue nor a tag is given, so there is nothing to allow")
    if problems:
        raise InvalidPolicy("\n".join(problems))


def _problems(name: QueueName) -> list[str]:
    try:
        parse_queue_name(name.removesuffix(FIFO_SUFFIX))
    except InvalidQueueName as error:
        return [str(error)]
    return []


def _on_originals(name: str, actions: Sequence[str], splittable: Splittable) -> list[dict[str, object]]:
    statements = []
    if splittable.queues:
        statements.append(_allowed(name, actions, _arns(splittable, splittable.queues)))
    if splittable.tag:
        tagged = {"StringEquals": splittable.tag.condition(OF_QUEUE)}
        statements.append(_allowed(f"{name}ByTag", actions, [f"{splittable.arn_prefix}*"], tagged))
    return statements


def _on_temporary_queues(splittable: Splittable) -> list[dict[str, object]]:
    queues = _temporary_arns(splittable)
    if splittable.temporary_tag is None:
        return [_allowed("UseTemporaryQueues", (*CREATE_TEMPORARY_QUEUES, *USE_TEMPORARY_QUEUES), queues)]
    tag = splittable.temporary_tag
    # A queue is created with its tags, and has none before. One with another value must not be taken over by TagQueue.
    created = {"StringEquals": tag.condition(OF_REQUEST), "StringEqualsIfExists": tag.condition(OF_QUEUE)}
    return [
        _allowed("CreateTemporaryQueuesByTag", CREATE_TEMPORARY_QUEUES, queues, created),
        _allowed("UseTemporaryQueuesByTag", USE_TEMPORARY_QUEUES, queues, {"StringEquals": tag.condition(OF_QUEUE)}),
    ]


def _returned_from(splittable: Splittable) -> dict[str, object]:
    queues, name = _temporary_arns(splittable), "ReturnFromTemporaryQueues"
    if splittable.temporary_tag is None:
        return _allowed(name, RETURN_FROM_TEMPORARY_QUEUES, queues)
    tagged = {"StringEquals": splittable.temporary_tag.condition(OF_QUEUE)}
    return _allowed(f"{name}ByTag", RETURN_FROM_TEMPORARY_QUEUES, queues, tagged)


def _temporary_arns(splittable: Splittable) -> list[str]:
    return [f"{splittable.arn_prefix}{splittable.prefix}*"]


def _through_sqs(splittable: Splittable) -> Mapping[str, Mapping[str, str]]:
    region = splittable.arn_prefix.split(":")[3]
    return {"StringEquals": {"kms:ViaService": f"sqs.{region}.amazonaws.com"}}


def _arns(splittable: Splittable, names: Sequence[QueueName]) -> list[str]:
    return [f"{splittable.arn_prefix}{name}" for name in names]


def _allowed(
    name: str,
    actions: Sequence[str],
    resources: Sequence[str],
    conditions: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, object]:
    statement: dict[str, object] = {
        "Sid": name,
        "Effect": "Allow",
        "Action": list(actions),
        "Resource": list(resources),
    }
    return statement | ({"Condition": conditions} if conditions else {})
