"""The control queues of users, with the settings of the administrators' queue; the name identifies the user."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.aws.exchange.policy import ExchangeLocation
from signalbox.aws.shared.errors import effect, look
from signalbox.aws.shared.managed_queues import OwnQueues
from signalbox.aws.shared.mappings import DELETING, EventSourceMappings
from signalbox.errors import RejectedError
from signalbox.exchange.model.connections import QueueMissing
from signalbox.exchange.model.names import CONTROL_MARK, StageNames
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import UserName

if TYPE_CHECKING:
    from mypy_boto3_lambda.client import LambdaClient
    from mypy_boto3_lambda.type_defs import EventSourceMappingConfigurationTypeDef
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

USER_TAG = "signalbox:user"
KEY: "QueueAttributeNameType" = "KmsMasterKeyId"
TAKEN_OVER: tuple["QueueAttributeNameType", ...] = (
    "VisibilityTimeout",
    "MessageRetentionPeriod",
    "RedrivePolicy",
    "KmsDataKeyReusePeriodSeconds",
    KEY,
)


class ControlQueueUnread(RejectedError):
    """Raised when no function consumes the administrators' control queue, so that none would consume a user's."""


@dataclass(frozen=True, slots=True)
class UserControlQueues:
    """Creates and deletes a user's control queue and its event source mapping."""

    sqs: "SQSClient"
    functions: "LambdaClient"
    administrators_url: str
    prefix: str

    @property
    def names(self) -> StageNames:
        """Return the names of the stage's resources."""
        return StageNames(self.administrators_url.rpartition("/")[2].removesuffix(CONTROL_MARK), self.prefix)

    def location(self) -> ExchangeLocation:
        """Return the location of the stage's exchanges. Raises `EffectRefused` and `EffectFailed`."""
        attributes = self._attributes()
        return ExchangeLocation(self.names, _prefix(attributes["QueueArn"]), attributes[KEY])

    def make(self, user: UserName, tags: Mapping[str, str]) -> None:
        """Create a user's control queue, or its missing parts. Raises `RejectedError` and `UnavailableError`."""
        attributes, name = self._attributes(), self.names.control_queue(user)
        like = self._reader(attributes["QueueArn"])
        settings = {str(key): value for key, value in _taken_over(attributes).items()}
        self._queues(attributes["QueueArn"]).make(name, settings, tags)
        self._connect(name, attributes["QueueArn"], like, tags)

    def reconnect(self, user: UserName, tags: Mapping[str, str]) -> None:
        """Give an existing control queue the settings and the reader of the administrators' queue.

        A stack that was deleted and deployed again has another function and another dead-letter queue. Raises
        `RejectedError` and `UnavailableError`.
        """
        attributes, name = self._attributes(), self.names.control_queue(user)
        like = self._reader(attributes["QueueArn"])
        with effect(f"queue {name!r}"):
            url = self._queues(attributes["QueueArn"]).url(name)
            try:
                self.sqs.set_queue_attributes(QueueUrl=url, Attributes=_taken_over(attributes))
            except self.sqs.exceptions.QueueDoesNotExist as error:
                remedy = f"`signalbox user add {user}` creates it"
                raise QueueMissing(f"control queue {name!r} does not exist: {remedy}") from error
        self._connect(name, attributes["QueueArn"], like, tags)

    def remove(self, user: UserName) -> None:
        """Delete a user's control queue. Deleting a missing one has no effect.

        Raises `RejectedError` and `UnavailableError`.
        """
        arn, name = self._attributes()["QueueArn"], self.names.control_queue(user)
        # The mapping goes first: without its queue, it would not be found again.
        self._mappings(arn, self._reader(arn), {}).remove(name)
        self._queues(arn).delete(name)

    def _attributes(self) -> Mapping[str, str]:
        with effect("the administrators' control queue"):
            attributes = self.sqs.get_queue_attributes(
                QueueUrl=self.administrators_url, AttributeNames=["QueueArn", *TAKEN_OVER]
            )
        return {str(name): value for name, value in attributes["Attributes"].items()}

    def _connect(
        self,
        name: QueueName,
        arn: str,
        like: "EventSourceMappingConfigurationTypeDef",
        tags: Mapping[str, str],
    ) -> None:
        mappings = self._mappings(arn, like, tags)
        if all(mapping["State"] == DELETING for mapping in mappings.of(name)):
            mappings.create(name)

    def _reader(self, arn: str) -> "EventSourceMappingConfigurationTypeDef":
        with look("event source mapping of the administrators' control queue"):
            listed = self.functions.list_event_source_mappings(EventSourceArn=arn)["EventSourceMappings"]
        found = [mapping for mapping in listed if mapping["State"] != DELETING]  # of a stack deleted just before
        if not found:
            raise ControlQueueUnread(f"no function reads the control queue {self.administrators_url}")
        return found[0]

    def _queues(self, arn: str) -> OwnQueues:
        return OwnQueues(self.sqs, self.administrators_url.rpartition("/")[0] + "/", _prefix(arn))

    def _mappings(
        self, arn: str, like: "EventSourceMappingConfigurationTypeDef", tags: Mapping[str, str]
    ) -> EventSourceMappings:
        return EventSourceMappings(
            self.functions,
            like["FunctionArn"],
            _prefix(arn),
            like["ScalingConfig"]["MaximumConcurrency"],
            tags,
            batch_size=like["BatchSize"],
        )


def _taken_over(attributes: Mapping[str, str]) -> "dict[QueueAttributeNameType, str]":
    return {name: attributes[name] for name in TAKEN_OVER if name in attributes}


def _prefix(arn: str) -> str:
    return arn.rpartition(":")[0] + ":"
