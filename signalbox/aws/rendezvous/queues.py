"""The broker queue and the client queues in SQS."""

import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeVar
from zlib import crc32

from botocore.exceptions import ClientError

from signalbox.aws.shared.batch_calls import hide
from signalbox.errors import EffectFailed, RejectedError
from signalbox.queues import QueueUrl, allow_policy, own_tags, tls_only
from signalbox.rendezvous.model.states import ClientId

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

CAPABILITY = "rendezvous"
# SQS documents that a new queue may be unknown for one second: four tries, half a second apart, cover two seconds.
SEND_TRIES = 4
SEND_PAUSE_SECONDS = 0.5
# Upstream's client receives its answer within 108 s or never, so a longer retention has no use.
CLIENT_RETENTION_SECONDS = 300
# A reply has at most 100,000 bytes, with its quotes escaped twice that.
LARGEST_BYTES, SIZES = 262_144, 60_000
# Characters of JSON that SQS does not accept.
ACCEPTED = str.maketrans("\ufffe\uffff", "\ufffd\ufffd")
ARRIVED: tuple["QueueAttributeNameType", ...] = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
OF_STAGE: tuple["QueueAttributeNameType", ...] = ("LastModifiedTimestamp", "Policy")

Result = TypeVar("Result")


class QueueTaken(RejectedError):
    """Raised when a queue with the name of a client queue exists and is not one of this stage."""


class QueueGone(RejectedError):
    """Raised when a client's queue no longer exists, or was deleted too recently to be created again."""


@dataclass(frozen=True, slots=True)
class SqsClientQueues:
    """`ClientQueues`: one queue per client, created with its tags and TLS-only policy in one call.

    `arn_prefix` and `url_prefix` are the common starts of the ARNs and URLs of client queues.
    """

    sqs: "SQSClient"
    arn_prefix: str
    url_prefix: str
    stage: str
    sleep: Callable[[float], None]

    def create(self, client_id: ClientId, *, message_id: str) -> bool:
        """Create the client's queue for an offer message; return False if the queue is that of another message.

        Raises `QueueTaken` and `QueueGone`.
        """
        arn = self.arn_prefix + client_id
        try:
            self.sqs.create_queue(
                QueueName=arn.rpartition(":")[2],
                Attributes=client_queue_attributes(arn, message_id=message_id, stage=self.stage),
                tags=own_tags(stage=self.stage, capability=CAPABILITY),
            )
        except self.sqs.exceptions.QueueNameExists:
            self._require_own(client_id)
            return False
        except self.sqs.exceptions.QueueDeletedRecently as error:
            # A client gives up after five seconds without its queue: retries for a minute would only cost others time.
            raise QueueGone(f"the queue of client {client_id!r} was deleted less than a minute ago") from error
        return True

    def _require_own(self, client_id: ClientId) -> None:
        """Check that a queue is of this stage: others get no messages, and no record whose lease would delete them."""
        try:
            page = self.sqs.get_queue_attributes(QueueUrl=self._url(client_id), AttributeNames=OF_STAGE)
        except self.sqs.exceptions.QueueDoesNotExist as error:
            raise EffectFailed(f"the queue of client {client_id!r} is being deleted") from error
        if not self._is_ours(page["Attributes"]):
            raise QueueTaken(f"the queue of client {client_id!r} exists and is not a client queue of ours")

    def send(self, client_id: ClientId, reply: str) -> None:
        """Send a reply to a client's queue; retry while SQS does not know a new queue yet. Raises `QueueGone`."""
        text = reply.translate(ACCEPTED)
        self._when_known(client_id, lambda url: self.sqs.send_message(QueueUrl=url, MessageBody=text))

    def is_empty(self, client_id: ClientId) -> bool:
        """Return whether no reply was ever sent to a client's queue; False for a queue that no longer exists.

        Retries as `send` does while SQS does not know a new queue yet.
        """
        try:
            page = self._when_known(
                client_id, lambda url: self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=ARRIVED)
            )
        except QueueGone:
            return False
        return not any(int(page["Attributes"][name]) for name in ARRIVED)

    def _when_known(self, client_id: ClientId, call: Callable[[str], Result]) -> Result:
        for _ in range(SEND_TRIES):
            try:
                return call(self._url(client_id))
            except self.sqs.exceptions.QueueDoesNotExist:
                self.sleep(SEND_PAUSE_SECONDS)
        raise QueueGone(f"the queue of client {client_id!r} does not exist any more")

    def delete(self, client_id: ClientId) -> None:
        """Delete a client's queue; do nothing if it no longer exists."""
        with suppress(self.sqs.exceptions.QueueDoesNotExist):
            self.sqs.delete_queue(QueueUrl=self._url(client_id))

    def delete_old(self, queue_url: QueueUrl, *, before: datetime) -> bool:
        """Delete a client queue of this stage that was not changed since a time; return whether it was deleted."""
        try:
            page = self.sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=OF_STAGE)
            found = page["Attributes"]
            if not self._is_ours(found) or float(found["LastModifiedTimestamp"]) >= before.timestamp():
                return False
            self.sqs.delete_queue(QueueUrl=queue_url)
        except ClientError:  # it is gone, or its owner denies the call: neither may end the sweep of the others
            return False
        return True

    def _is_ours(self, found: Mapping["QueueAttributeNameType", str]) -> bool:
        # By its policy: AWS allows an account five calls a second for tags, and strangers can cause more.
        return bool(json.loads(found.get("Policy") or "{}").get("Id") == _policy_id(self.stage))

    def _url(self, client_id: ClientId) -> str:
        return self.url_prefix + client_id


@dataclass(frozen=True, slots=True)
class SqsBrokerQueue:
    """`BrokerQueue`: the queue of client offers."""

    sqs: "SQSClient"
    queue_url: str

    def delete(self, receipt_handle: str) -> None:
        """Delete an offer message; do nothing if it no longer exists."""
        self.sqs.delete_message(QueueUrl=self.queue_url, ReceiptHandle=receipt_handle)

    def hide(self, hidden: Mapping[str, timedelta]) -> None:
        """Hide at most ten messages, by receipt handle, for these times, rounded up to seconds, in one call.

        A failure is only logged: the next delivery hides the message.
        """
        seconds = {handle: max(1, math.ceil(time.total_seconds())) for handle, time in hidden.items()}
        hide(self.sqs, self.queue_url, {handle: timedelta(seconds=one) for handle, one in seconds.items()})

    def ensure(self, arn: str, attributes: Mapping["QueueAttributeNameType", str]) -> None:
        """Create the queue again, with these attributes and the policies of a stage's queues, if it was deleted."""
        name = arn.rpartition(":")[2]
        try:
            self.sqs.get_queue_url(QueueName=name)
        except self.sqs.exceptions.QueueDoesNotExist:
            self.sqs.create_queue(
                QueueName=name, Attributes={**attributes, "RedriveAllowPolicy": allow_policy(), "Policy": tls_only(arn)}
            )


def _policy_id(stage: str) -> str:
    return f"{stage}-{CAPABILITY}"


def client_queue_attributes(arn: str, *, message_id: str, stage: str) -> dict["QueueAttributeNameType", str]:
    """Return the attributes of a client queue: retention, encryption, a size limit and a policy that requires TLS.

    The policy names the stage. The size limit depends on the offer message, so SQS refuses to create the queue again
    for a copy of the message.
    """
    return {
        "MessageRetentionPeriod": str(CLIENT_RETENTION_SECONDS),
        "RedriveAllowPolicy": allow_policy(),
        # With a customer-managed key KMS would generate a data key per queue: more expensive than the whole rendezvous.
        "SqsManagedSseEnabled": "true",
        "Policy": tls_only(arn, policy_id=_policy_id(stage)),
        "MaximumMessageSize": str(LARGEST_BYTES - crc32(message_id.encode()) % SIZES),
    }
