"""The connections of queues to functions: event source mappings, and the item of the last check of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.aws.exchange.user_control_queues import USER_TAG, UserControlQueues
from signalbox.aws.shared.dynamodb import DynamoTable, milliseconds, moment
from signalbox.aws.shared.errors import translate_read_errors, translate_write_errors
from signalbox.aws.shared.expressions import Put
from signalbox.aws.shared.mappings import DELETING, delete_tagged
from signalbox.exchange.model.connections import Connection, ConnectionCheck, FunctionArn, Readers
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import UserName

if TYPE_CHECKING:
    from mypy_boto3_lambda.client import LambdaClient

KEY = {"pk": "connections", "sk": "connections"}


@dataclass(frozen=True, slots=True)
class LambdaConnections:
    """`Connections`. `queue_arn_prefix` is the ARN of a queue up to its name; `tags` mark this stage's mappings."""

    functions: "LambdaClient"
    control_queues: UserControlQueues
    queue_arn_prefix: str
    tags: Mapping[str, str]

    def every(self) -> Sequence[Connection]:
        """Return all mappings of SQS queues in the account. Raises `EffectFailed`."""
        with translate_read_errors("event source mappings"):
            return list(self._every())

    def connect_user(self, user: UserName) -> None:
        """Give a user's control queue the reader and the settings of the administrators' control queue. Idempotent.

        Raises `RejectedError` and `UnavailableError`.
        """
        self.control_queues.reconnect(user, {**self.tags, USER_TAG: user})

    def disconnect(self, connection: Connection) -> bool:
        """Delete a mapping that this stage has created; return False, and keep it, if its tags name another owner.

        Raises `EffectRefused` and `EffectFailed`.
        """
        with translate_write_errors(f"event source mapping {connection.mapping_id!r} of queue {connection.queue!r}"):
            return delete_tagged(self.functions, connection.mapping_id, self.queue_arn_prefix, self.tags)

    def _every(self) -> Iterator[Connection]:
        for page in self.functions.get_paginator("list_event_source_mappings").paginate():
            for mapping in page["EventSourceMappings"]:
                source, function = mapping.get("EventSourceArn", ""), FunctionArn(mapping.get("FunctionArn", ""))
                if source.startswith(self.queue_arn_prefix) and mapping["State"] != DELETING:
                    yield Connection(mapping["UUID"], QueueName(source.removeprefix(self.queue_arn_prefix)), function)


@dataclass(frozen=True, slots=True)
class DynamoConnectionChecks:
    """`ConnectionChecks` over one item of the table `Exchanges`."""

    table: DynamoTable

    def last(self) -> ConnectionCheck | None:
        """Return the last complete check, or None."""
        item = self.table.get(KEY, is_consistent=False)
        if item is None:
            return None
        readers = Readers(FunctionArn(item["router"]), FunctionArn(item["control"]))
        return ConnectionCheck(readers, moment(item["checked_at"]))

    def record(self, check: ConnectionCheck) -> None:
        """Store a complete check."""
        readers = {"router": check.readers.router, "control": check.readers.control}
        self.table.write(Put({**KEY, **readers, "checked_at": milliseconds(check.at)}))
