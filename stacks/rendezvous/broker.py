"""The broker queue of a stage, with its dead-letter queue and key."""

from dataclasses import dataclass

from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs

from stacks.shared.queue import DeadLetterQueue


@dataclass(frozen=True, slots=True)
class Broker:
    """The broker queue, its dead-letter queue and its KMS key; `owned` is False for an imported queue."""

    queue: sqs.IQueue
    dead_letters: DeadLetterQueue
    key: kms.IKey | None
    owned: bool
