"""The broker queue of a stage, and what belongs to it."""

from dataclasses import dataclass

from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs

from stacks.shared.queue import DeadLetterQueue


@dataclass(frozen=True, slots=True)
class Broker:
    """The broker queue, its dead letters, and the key that its messages are encrypted with, if any."""

    queue: sqs.IQueue
    dead_letters: DeadLetterQueue
    key: kms.IKey | None
    owned: bool
