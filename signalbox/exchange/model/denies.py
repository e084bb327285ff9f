"""The denies that take topics of realms from users, as control and routing see them: a deny wins on every way."""

from collections.abc import Collection, Mapping
from typing import Protocol

from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.topics import RoutingKey
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right

UserInRealm = tuple[ExchangeName, UserName]


class Denies(Protocol):
    """The denies of one user in one realm: its own and those of its groups."""

    def match(self, right: Right, key: RoutingKey) -> bool:
        """Return whether a deny removes a right to a topic."""

    def cover(self, right: Right, pattern: Pattern) -> bool:
        """Return whether a deny removes the right to every topic that a binding's pattern matches."""


class DenyReader(Protocol):
    """The stored denies of the stage's users."""

    def of(self, users: Collection[UserInRealm]) -> Mapping[UserInRealm, Denies]:
        """Return the denies by user; a user without denies is left out."""


class NoDenies:
    """`DenyReader` of a stage without live, which has no denies."""

    def of(self, users: Collection[UserInRealm]) -> Mapping[UserInRealm, Denies]:
        """Return nothing."""
        del users
        return {}
