"""The port through which the client of a cluster gets its address, the CA that it trusts, and a token."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.shared.errors import is_retryable, reason
from signalbox.aws.splitting.kubernetes.api import ClusterRefused, ClusterUnavailable


@dataclass(frozen=True, slots=True)
class ApiAddress:
    """The address of an API server, and the CA of its certificate as PEM."""

    endpoint: str
    ca: str


@dataclass(frozen=True, slots=True)
class Remedies:
    """What an operator can do when a cluster is not reached, not trusted, or refuses; each is a clause of an error."""

    unreachable: str
    untrusted: str
    unauthenticated: str
    forbidden: str


class ClusterAccess(Protocol):
    """The cached connection and token of one cluster; `again` reads them anew.

    Both methods raise `ClusterUnavailable` and `ClusterRefused`.
    """

    @property
    def remedies(self) -> Remedies:
        """The actions for an operator after a failure."""

    def connection(self, *, again: bool = False) -> ApiAddress:
        """Return the address and the CA."""

    def token(self, *, again: bool = False) -> str:
        """Return a bearer token."""


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
