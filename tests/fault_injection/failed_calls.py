"""Rule: 1 in 100 calls is throttled or gets a server error, before or after it was carried out."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.fault_injection.calls import Answer, Forward, ServiceCall
from tests.fault_injection.chance import Chance
from tests.fault_injection.errors import KMS_THROTTLED, ServiceError, faults_of

FAULT_ODDS = 100

# Services that document that a call with a server error may have been carried out; of the others' calls few can be
# repeated without harm (a second CreateUser fails), and their errors come before.
MAYBE_CARRIED_OUT = ("sqs", "dynamodb", "firehose")
# AWS accepts a repeated deletion of a message or queue; MiniStack refuses it.
DELETIONS = ("DeleteMessage", "DeleteMessageBatch", "DeleteQueue")
# The calls of SQS that use the key of an encrypted queue
# (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html).
NEEDS_KEY = ("SendMessage", "SendMessageBatch", "ReceiveMessage")


@dataclass(frozen=True, slots=True)
class FailedCalls:
    """Refuses calls, or loses their answers."""

    chance: Chance
    is_encrypted: Callable[[str], bool]
    """Whether the queue of this name has a key of KMS."""

    async def answer(self, call: ServiceCall, forward: Forward) -> Answer:
        """Return the service's answer, or an error in its place."""
        kind = f"{call.service}:{call.action if call.service != 's3' else call.action.partition(' ')[0]}"
        if not self.chance.is_one_in(FAULT_ODDS, "failed calls", kind):
            return await forward(call)
        throttled, failed = faults_of(call)
        if self.chance.is_one_in(2, "throttled calls", kind):
            return self._throttled(call, throttled, kind).answer(call)
        if (
            call.service in MAYBE_CARRIED_OUT
            and call.action not in DELETIONS
            and self.chance.is_one_in(2, "server errors", kind)
        ):
            answer = await forward(call)
            return failed.answer(call) if answer.is_success else answer
        return failed.answer(call)

    def _throttled(self, call: ServiceCall, throttled: ServiceError, kind: str) -> ServiceError:
        if call.service != "sqs" or call.action not in NEEDS_KEY or not self.is_encrypted(call.resource):
            return throttled
        return KMS_THROTTLED if self.chance.is_one_in(3, "throttled keys", kind) else throttled
