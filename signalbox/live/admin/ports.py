"""What granting asks of the world, as Protocols named for their roles.

All of them raise `RejectedError` when AWS refuses something for good and `UnavailableError` when it may work later.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from signalbox.clock import Clock
from signalbox.exchange.model.ports import Exchanges, Users
from signalbox.exchange.model.routing_ports import ParallelMap, serial_map
from signalbox.history.event import HistoryEvent
from signalbox.live.admin.grants import Grant
from signalbox.live.session.ports import Inbox, Roster
from signalbox.live.wamp.authentication import Credentials
from signalbox.sarracenia.rights.names import ExchangeName, UserName


@dataclass(frozen=True, slots=True)
class KeptGrants:
    """The grants of a user in a realm as they are stored; `version` grows with every change, and is 0 before any."""

    grants: tuple[Grant, ...] = ()
    version: int = 0


class Grants(Protocol):
    """The grants that users have beside their roles; reads see every write that was answered."""

    def find(self, realm: ExchangeName, user: UserName) -> KeptGrants:
        """Return the grants of a user in a realm."""
        ...

    def save(self, realm: ExchangeName, user: UserName, grants: Sequence[Grant], *, replacing: KeptGrants) -> bool:
        """Store grants under the next version; False if those that are stored are not `replacing` any more."""
        ...


class Secrets(Protocol):
    """What the secrets of users are compared with."""

    def put(self, user: UserName, credentials: Credentials) -> None:
        """Store what there is of a user's secret in the place of that of an older one."""
        ...

    def remove(self, user: UserName) -> None:
        """Forget a user's secret; one that is gone already is fine."""
        ...


@dataclass(frozen=True, slots=True)
class GrantingPorts:
    """What granting works with; `record` takes history events, `parallel_map` has several looks at a time."""

    exchanges: Exchanges
    users: Users
    grants: Grants
    secrets: Secrets
    roster: Roster
    inbox: Inbox
    clock: Clock
    record: Callable[[Sequence[HistoryEvent]], None]
    parallel_map: ParallelMap = serial_map
