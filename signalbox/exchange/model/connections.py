"""The connections of queues to the functions that read them: event source mappings that are created at run time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NewType, Protocol

from signalbox.errors import RejectedError
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import UserName

FunctionArn = NewType("FunctionArn", str)


class QueueMissing(RejectedError):
    """Raised when the SQS queue of an exchange or a user on record does not exist."""


@dataclass(frozen=True, slots=True)
class Readers:
    """The functions of the deployed stage: of the queues of exchanges, and of the control queues of users.

    A function has another ARN after the stack was deleted and deployed again, and after CloudFormation has replaced it.
    """

    router: FunctionArn
    control: FunctionArn


@dataclass(frozen=True, slots=True)
class Connection:
    """An event source mapping that is not being deleted, and the function that it calls, which may be gone."""

    mapping_id: str
    queue: QueueName
    function: FunctionArn


@dataclass(frozen=True, slots=True)
class ConnectionCheck:
    """The last check after which every queue on record was connected to the functions `readers`."""

    readers: Readers
    at: datetime


class AccountMappings(Protocol):
    """The event source mappings of the account and region."""

    def every(self) -> Sequence[Connection]:
        """Return all mappings of SQS queues in the account. Raises `UnavailableError`."""

    def connect_user(self, user: UserName) -> None:
        """Give a user's control queue the reader and the settings of the administrators' control queue. Idempotent.

        Raises `RejectedError` and `UnavailableError`.
        """

    def disconnect(self, connection: Connection) -> bool:
        """Delete a mapping that this stage has created; return False, and keep it, if its tags name another owner.

        Raises `RejectedError` and `UnavailableError`.
        """


class ConnectionChecks(Protocol):
    """The stored result of the last complete check."""

    def last(self) -> ConnectionCheck | None:
        """Return the last complete check, or None."""

    def record(self, check: ConnectionCheck) -> None:
        """Store a complete check."""
