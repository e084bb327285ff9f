"""The ports of the commands about live, as Protocols.

All methods raise `RejectedError` for permanent failures and `UnavailableError` for failures that may be retried.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from signalbox.clock import Clock
from signalbox.exchange.model.ports import Exchanges, Users
from signalbox.history.event import HistoryEvent
from signalbox.live.admin.grants import Grant
from signalbox.live.session.ports import Inbox, RealmSessions
from signalbox.live.wamp.authentication import Credentials
from signalbox.parallel import ParallelMap, serial_map
from signalbox.sarracenia.rights.names import ExchangeName, UserName


@dataclass(frozen=True, slots=True)
class StoredGrants:
    """The stored grants of a user in a realm; `version` grows with every change and is 0 before the first."""

    grants: tuple[Grant, ...] = ()
    version: int = 0


class Grants(Protocol):
    """The grants that users have in addition to their roles. Reads are strongly consistent."""

    def find(self, realm: ExchangeName, user: UserName) -> StoredGrants:
        """Return the grants of a user in a realm."""
        ...

    def save(self, realm: ExchangeName, user: UserName, grants: Sequence[Grant], *, replacing: StoredGrants) -> bool:
        """Store grants under the next version; return False if the stored ones are not `replacing` any more."""
        ...


class Secrets(Protocol):
    """The credentials of users, which their secrets are compared with."""

    def put(self, secrets: Mapping[UserName, Credentials]) -> None:
        """Store users' credentials, replacing older ones. A failure may leave some of them stored."""
        ...

    def remove(self, user: UserName) -> None:
        """Delete a user's credentials. Deleting twice is harmless."""
        ...


@dataclass(frozen=True, slots=True)
class LiveAdminPorts:
    """The ports of the commands about live; `record` takes history events, `parallel_map` runs reads concurrently."""

    exchanges: Exchanges
    users: Users
    grants: Grants
    secrets: Secrets
    realm_sessions: RealmSessions
    inbox: Inbox
    clock: Clock
    record: Callable[[Sequence[HistoryEvent]], None]
    parallel_map: ParallelMap = serial_map
