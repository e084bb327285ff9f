"""The control and reply queues of users, with settings of the administrators' queue; the name identifies the user."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.aws.exchange.policy import ExchangeLocation
from signalbox.aws.exchange.queues import seconds_text
from signalbox.aws.shared.errors import translate_read_errors, translate_write_errors
from signalbox.aws.shared.managed_queues import OwnQueues
from signalbox.aws.shared.mappings import DELETING, EventSourceMappings
from signalbox.control.protocol import REPLY_RETENTION, REPLY_VISIBILITY
from signalbox.errors import RejectedError, UnavailableError
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
# Commands of a user that are handled at once, the least that Lambda allows: a user's flood takes few functions.
CONCURRENCY = 2
KEY: "QueueAttributeNameType" = "KmsMasterKeyId"
REUSE: "QueueAttributeNameType" = "KmsDataKeyReusePeriodSeconds"
# Not the dead-letter queue: SQS lets a queue name ten queues that may use it. `control` dead-letters commands itself.
TAKEN_OVER: tuple["QueueAttributeNameType", ...] = ("VisibilityTimeout", "MessageRetentionPeriod", REUSE, KEY)


class ControlQueueUnread(RejectedError):
    """Raised when no function consumes the administrators' control queue, so that none would consume a user's."""


@dataclass(frozen=True, slots=True)
class UserControlQueues:
    """Creates and deletes a user's control queue with its event source mapping, and the user's reply queue."""

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
        """Create a user's queues, or their missing parts. Raises `RejectedError` and `UnavailableError`."""
        attributes, name = self._attributes(), self.names.control_queue(user)
        like = self._reader(attributes["QueueArn"])
        settings = {str(key): value for key, value in _taken_over(attributes).items()}
        self._queues(attributes["QueueArn"]).make(name, settings, tags)
        self._make_reply_queue(user, tags, attributes)
        self._connect(name, attributes["QueueArn"], like, tags)

    def make_reply_queues(self, users: Iterable[UserName], tags: Mapping[str, str]) -> dict[UserName, str]:
        """Create the reply queues that users lack; return the users without one, each with the reason."""
        attributes: Mapping[str, str] = {}
        failed: dict[UserName, str] = {}
        for user in users:
            try:
                attributes = attributes or self._attributes()
                self._make_reply_queue(user, {**tags, USER_TAG: user}, attributes)
            except (RejectedError, UnavailableError) as error:
                failed[user] = str(error)
        return failed

    def reconnect(self, user: UserName, tags: Mapping[str, str]) -> None:
        """Give an existing control queue the settings and the reader of the administrators' queue.

        A stack that was deleted and deployed again has another function and another dead-letter queue. Raises
        `RejectedError` and `UnavailableError`.
        """
        attributes, name = self._attributes(), self.names.control_queue(user)
        like = self._reader(attributes["QueueArn"])
        with translate_write_errors(f"queue {name!r}"):
            url = self._queues(attributes["QueueArn"]).url(name)
            try:
                self.sqs.set_queue_attributes(QueueUrl=url, Attributes=_taken_over(attributes) | {"RedrivePolicy": ""})
            except self.sqs.exceptions.QueueDoesNotExist as error:
                remedy = f"`signalbox user add {user}` creates it"
                raise QueueMissing(f"control queue {name!r} does not exist: {remedy}") from error
        self._connect(name, attributes["QueueArn"], like, tags)

    def remove(self, user: UserName) -> None:
        """Delete a user's queues. Deleting missing ones has no effect.

        Raises `RejectedError` and `UnavailableError`.
        """
        arn, name = self._attributes()["QueueArn"], self.names.control_queue(user)
        # The mapping goes first: without its queue, it would not be found again.
        self._mappings(arn, self._reader(arn), {}).remove(name)
        self._queues(arn).delete(name)
        self._queues(arn).delete(self.names.reply_queue(user))

    def _attributes(self) -> Mapping[str, str]:
        with translate_write_errors("the administrators' control queue"):
            attributes = self.sqs.get_queue_attributes(
                QueueUrl=self.administrators_url, AttributeNames=["QueueArn", *TAKEN_OVER]
            )
        return {str(name): value for name, value in attributes["Attributes"].items()}

    def _make_reply_queue(self, user: UserName, tags: Mapping[str, str], attributes: Mapping[str, str]) -> None:
        settings = {
            "MessageRetentionPeriod": seconds_text(REPLY_RETENTION),
            "VisibilityTimeout": seconds_text(REPLY_VISIBILITY),
            **{str(name): attributes[name] for name in (KEY, REUSE) if name in attributes},
        }
        self._queues(attributes["QueueArn"]).make(self.names.reply_queue(user), settings, tags)

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
        with translate_read_errors("event source mapping of the administrators' control queue"):
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
        function, size = like["FunctionArn"], like["BatchSize"]
        return EventSourceMappings(self.functions, function, _prefix(arn), CONCURRENCY, tags, batch_size=size)


def _taken_over(attributes: Mapping[str, str]) -> "dict[QueueAttributeNameType, str]":
    return {name: attributes[name] for name in TAKEN_OVER if name in attributes}


def _prefix(arn: str) -> str:
    return arn.rpartition(":")[0] + ":"
