"""Users' access to realms, read from the tables `Exchanges` (realm, user) and `Live` (grants, secret) in one call.

The grants of groups are queried in a second call, at most once a second and only after a change.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from signalbox.aws.exchange.items import user_key, user_of
from signalbox.aws.live.account_items import USER, credentials_in, ended_tokens_item, rights_in
from signalbox.aws.live.group_grants import CachedGroupGrants
from signalbox.aws.live.items import (
    VERSION,
    ended_tokens_key,
    failures_key,
    grants_key,
    group_grants_version_key,
    pepper_key,
    principal_key,
    secret_key,
)
from signalbox.aws.live.realms import RealmSettings, realm_key
from signalbox.aws.shared.dynamodb import DynamoTable, ttl
from signalbox.aws.shared.expressions import IS_NEW, Item, Put, Update, attr
from signalbox.live.identity.tokens import TokenIdentity
from signalbox.live.model.state import Account
from signalbox.live.ports import RealmAccess
from signalbox.live.rights.grants import Rights
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.sarracenia.rights.names import ExchangeName, UserName

KEPT_FOR = timedelta(minutes=5)


def stage_pepper(live: DynamoTable, fresh: str) -> str:
    """Return the stage's secret for credentials of unknown users; the first call of a stage stores `fresh`."""
    if found := live.get(pepper_key()):
        return str(found["value"])
    item = pepper_key() | {"value": fresh}
    return str((item if live.write(Put(item, IS_NEW)) else live.get(pepper_key()) or item)["value"])


@dataclass(frozen=True, slots=True)
class DynamoAccounts:
    """`Accounts` over the tables `Live` and `Exchanges`; a user without a secret gets unguessable credentials."""

    live: DynamoTable
    exchanges: DynamoTable
    pepper: str
    realms: RealmSettings = field(default_factory=RealmSettings)
    group_grants: CachedGroupGrants = field(default_factory=CachedGroupGrants)

    def access(
        self,
        realm: ExchangeName,
        user: UserName | None,
        *,
        now: datetime,
        token: TokenIdentity | None = None,
        is_anonymous: bool = False,
    ) -> RealmAccess:
        """Return the access of a user to a realm; without a user, only the realm's settings.

        The user of a `token` needs no record. If a user of the stage has the name, there is no account. With
        `is_anonymous` the session joins as the user without the user's secret.
        """
        read_at, known = self.realms.now(), self.realms.known(realm)
        granted = None if user is None else self.group_grants.known(realm)
        keys: dict[str, list[Item]] = {self.exchanges.name: [] if known else [realm_key(realm)], self.live.name: []}
        if user is not None:
            keys[self.exchanges.name].append(user_key(user))
            keys[self.live.name] += [grants_key(realm, user), principal_key(realm, user)]
            keys[self.live.name] += [] if granted else [group_grants_version_key(realm)]
        if user is not None and token is None:
            keys[self.live.name] += [secret_key(user), failures_key(user)]
        found = self.live.get_across(keys) if any(keys.values()) else {}
        by_kind = {item["sk"]: item for items in found.values() for item in items}
        live = known or self.realms.read(realm, by_kind.values(), read_at=read_at)
        failures = _failures(by_kind.get("failures"), now)
        if user is None:
            return RealmAccess(live, None, failures)
        if granted is None:  # read also for an unknown user, so that the time of a reply does not reveal who exists
            granted = self.group_grants.read(self.live, realm, by_kind.get(VERSION), read_at=read_at)
        if (token is None) is not (USER in by_kind):
            return RealmAccess(live, None, failures)
        rights = rights_in(realm, user, by_kind, granted, token=token, is_anonymous=is_anonymous)
        return RealmAccess(live, self._account(user, token, rights, by_kind), failures)

    def count_failure(self, user: UserName, *, now: datetime) -> None:
        """Count a failed login, even for unknown users, so that responses do not reveal which users exist."""
        is_same_minute = attr("minute").eq(_minute(now))
        if not self.live.write(Update(failures_key(user), adds={"count": 1}, condition=is_same_minute)):
            first = {"minute": _minute(now), "count": 1} | ttl(now + KEPT_FOR)
            self.live.write(Put(failures_key(user) | first))

    def end_tokens(self, realm: ExchangeName, user: UserName, *, now: datetime) -> None:
        """Refuse the tokens of a user of an issuer that were issued before a time. Repeating it is harmless."""
        self.live.write(Put(ended_tokens_item(realm, user, now=now)))

    def tokens_ended_at(self, realm: ExchangeName, user: UserName) -> datetime | None:
        """Return the time before which tokens of a user must not have been issued, or None."""
        item = self.live.get(ended_tokens_key(realm, user))
        return None if item is None else datetime.fromtimestamp(int(item["ended_at"]), UTC)

    def _account(self, name: UserName, token: TokenIdentity | None, rights: Rights, items: dict[str, Item]) -> Account:
        role = user_of(items[USER]).role if token is None else token.role
        credentials = credentials_in(items) or StoredSecret.decoy(name, pepper=self.pepper)
        return Account(name, role, credentials, rights)


@dataclass(frozen=True, slots=True)
class DynamoUserRights:
    """`UserRights` over the tables `Live` and `Exchanges`."""

    live: DynamoTable
    exchanges: DynamoTable
    group_grants: CachedGroupGrants = field(default_factory=CachedGroupGrants)

    def find(
        self, realm: ExchangeName, user: UserName, *, token: TokenIdentity | None = None, is_anonymous: bool = False
    ) -> Rights:
        """Return the rights of a user or of a token's user in a realm: none for an unknown user."""
        read_at, granted = self.group_grants.now(), self.group_grants.known(realm)
        keys = {
            self.exchanges.name: [user_key(user)],
            self.live.name: [grants_key(realm, user), principal_key(realm, user)],
        }
        keys[self.live.name] += [] if granted else [group_grants_version_key(realm)]
        found = self.live.get_across(keys)
        by_kind = {item["sk"]: item for items in found.values() for item in items}
        if granted is None:
            granted = self.group_grants.read(self.live, realm, by_kind.get(VERSION), read_at=read_at)
        return rights_in(realm, user, by_kind, granted, token=token, is_anonymous=is_anonymous)


def _failures(item: Item | None, now: datetime) -> int:
    return int(item["count"]) if item is not None and item["minute"] == Decimal(_minute(now)) else 0


def _minute(at: datetime) -> int:
    return int(at.timestamp()) // 60
