"""The port through which the client of a cluster gets its address, the CA that it trusts, and a token."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.shared.errors import is_retryable, reason
from signalbox.aws.splitting.kubernetes.api import ClusterRefused, ClusterUnavailable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Connection:
    """The address of an API server, and the CA of its certificate as PEM."""

    endpoint: str
    ca: str


@dataclass(frozen=True, slots=True)
class Remedies:
    """What an operator can do when a cluster is not reached, not trusted, or refuses; each is a clause of a text."""

    unreachable: str
    untrusted: str
    unauthenticated: str
    forbidden: str


class Access(Protocol):
    """The connection and the token of one cluster, kept for a time; with `again` they are read at once.

    Both methods raise `ClusterUnavailable` and `ClusterRefused`.
    """

    @property
    def remedies(self) -> Remedies:
        """The actions for an operator after a failure."""

    def connection(self, *, again: bool = False) -> Connection:
        """Return the address and the CA."""

    def token(self, *, again: bool = False) -> str:
        """Return a bearer token."""


@dataclass(slots=True)
class Kept(Generic[T]):
    """A value that is read again when it is older than `age`; no text shows it."""

    read: Callable[[], T]
    age: timedelta
    now: Callable[[], datetime]
    _value: T | None = field(default=None, repr=False)
    _until: datetime | None = None

    def get(self, *, again: bool) -> T:
        """Return the value; `again` reads it whatever its age."""
        now = self.now()
        if self._value is None or self._until is None or now >= self._until or again:
            self._value, self._until = self.read(), now + self.age
        return self._value


@contextmanager
def reading(subject: str) -> Iterator[None]:
    """Translate AWS's errors at `subject`. Raises `ClusterUnavailable` and `ClusterRefused`."""
    try:
        yield
    except ClientError as error:
        refusal = ClusterUnavailable if is_retryable(error) else ClusterRefused
        raise refusal(reason(error, subject)) from error
    except BotoCoreError as error:
        raise ClusterUnavailable(reason(error, subject)) from error
