"""The routes that a publication may take: none into a realm or a queue whose user is denied its topic."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.denies import Denies, UserInRealm
from signalbox.exchange.model.records import ResourceKind, ResourceRef
from signalbox.exchange.model.topics import RoutingKey
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right

Owners = Mapping[DeclaredName, Collection[UserName]]


@dataclass(frozen=True, slots=True)
class RouteDenies:
    """The denies that may concern a batch of `root`, and the users of the queues that it may reach."""

    root: ExchangeName
    denies: Mapping[UserInRealm, Denies]
    owners: Owners

    def refuse(self, right: Right, key: RoutingKey, users: Iterable[str], *, realm: ExchangeName) -> bool:
        """Return whether one of the users is denied a topic of a realm."""
        found = (self.denies.get((realm, UserName(user))) for user in users)
        return any(one is not None and one.match(right, key) for one in found)

    def permit(self, key: RoutingKey, publisher: str, *, via: ExchangeName, target: ResourceRef) -> bool:
        """Return whether a publication may pass from an exchange to a target of a binding, or to its alternate."""
        if target.kind is ResourceKind.EXCHANGE:
            return not self.refuse(Right.WRITE, key, [publisher], realm=ExchangeName(target.name))
        owners = self.owners.get(DeclaredName(target.name), ())
        return not any(self.refuse(Right.READ, key, owners, realm=realm) for realm in {self.root, via})
