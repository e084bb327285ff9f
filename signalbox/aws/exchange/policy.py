"""The IAM policy of a user of the exchange, derived from the naming convention."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from signalbox.exchange.model.names import DEAD_LETTER_MARK, StageNames
from signalbox.queues import FIFO_SUFFIX
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role, permitted_names

ANYTHING = "*"
# The prefixes of the names of exchanges and of queues: a user with access to all of them must not get access to the
# account's other queues, least of all to control queues, which identify users.
EXCHANGES, QUEUES = "x", "q_"
PUBLISH = ("sqs:SendMessage", "sqs:GetQueueUrl")
CONSUME = (
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibility",
    "sqs:GetQueueUrl",
    "sqs:GetQueueAttributes",
)
USE_KEY = ("kms:GenerateDataKey", "kms:Decrypt")


@dataclass(frozen=True, slots=True)
class ExchangeLocation:
    """The SQS location of a stage's exchanges and queues; `arn_prefix` is a queue's ARN up to its name."""

    names: StageNames
    arn_prefix: str
    key_arn: str

    @property
    def region(self) -> str:
        """Return the region of all queues."""
        return self.arn_prefix.split(":")[3]


def user_policy(user: UserName, role: Role, ownership: Ownership, location: ExchangeLocation) -> Mapping[str, object]:
    """Return the policy of a user; its resources follow from the same rule that authorizes commands."""
    written = _queues(permitted_names(user, role, Right.WRITE, ownership=ownership), EXCHANGES, location)
    read = _queues(permitted_names(user, role, Right.READ, ownership=ownership), QUEUES, location)
    own = permitted_names(user, role, Right.CONFIGURE, ownership=ownership)
    dead = [*_dead_letters(own, EXCHANGES, location), *_dead_letters(_exact(own), QUEUES, location)]
    through_queues = {"StringEquals": {"kms:ViaService": f"sqs.{location.region}.amazonaws.com"}}
    statements = [
        _allow(PUBLISH, [*written, location.arn_prefix + location.names.control_queue(user)]),
        _allow(CONSUME, [*read, *dead, location.arn_prefix + location.names.reply_queue(user)]),
        _allow(USE_KEY, [location.key_arn]) | {"Condition": through_queues},
    ]
    return {"Version": "2012-10-17", "Statement": statements}


def policy_text(policy: Mapping[str, object]) -> str:
    """Return a policy as JSON without white space, which IAM does not count anyway."""
    return json.dumps(policy, separators=(",", ":"))


def _queues(patterns: Iterable[str], beginning: str, location: ExchangeLocation) -> list[str]:
    """Return the ARNs of the exchanges, or of the queues, among the permitted patterns, which name both."""
    chosen = (name for pattern in _chosen(patterns, beginning) for name in _with_ordered(pattern))
    return [f"{location.arn_prefix}{location.names.prefix}{name}" for name in chosen]


def _dead_letters(patterns: Iterable[str], beginning: str, location: ExchangeLocation) -> list[str]:
    """Return the ARNs of their dead-letter queues; no other name contains the mark."""
    chosen = (f"{pattern}{DEAD_LETTER_MARK}{ANYTHING}" for pattern in _chosen(patterns, beginning))
    return [f"{location.arn_prefix}{location.names.prefix}{name}" for name in chosen]


def _exact(patterns: Iterable[str]) -> Iterator[str]:
    """Yield the patterns of one name each: a queue's pattern for several names includes their dead-letter queues."""
    return (pattern for pattern in patterns if not pattern.endswith(ANYTHING))


def _chosen(patterns: Iterable[str], beginning: str) -> Iterator[str]:
    full = (beginning + ANYTHING if pattern == ANYTHING else pattern for pattern in patterns)
    return (pattern for pattern in full if pattern.startswith(beginning))


def _with_ordered(pattern: str) -> tuple[str, ...]:
    return (pattern,) if pattern.endswith(ANYTHING) else (pattern, pattern + FIFO_SUFFIX)


def _allow(actions: Sequence[str], resources: Sequence[str]) -> dict[str, object]:
    return {"Effect": "Allow", "Action": list(actions), "Resource": list(resources)}
