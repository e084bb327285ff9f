"""Users' access to realms, read from the tables `Exchanges` (realm, user) and `Live` (grants, secret) in one call.

The grants of groups are queried in a second call, at most once a second and only after a change.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, cast

from boto3.dynamodb.conditions import Attr

from signalbox.aws.exchange.items import user_key, user_of
from signalbox.aws.live.account_items import CREDENTIALS, USER, rights_in
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
from signalbox.aws.shared.backoff import BACKOFF
from signalbox.aws.shared.dynamodb import Item, items_of_tables, succeeds
from signalbox.backoff import Backoff
from signalbox.live.identity.tokens import TokenIdentity
from signalbox.live.model.state import Account
from signalbox.live.ports import RealmAccess
from signalbox.live.rights.grants import Rights
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.sarracenia.rights.names import ExchangeName, UserName

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

KEPT_FOR = timedelta(minutes=5)
TOKENS_END_FOR = timedelta(days=31)  # longer than any sensible token is valid


def stage_pepper(live: "Table", fresh: str) -> str:
    """Return the stage's secret for credentials of unknown users; the first call of a stage stores `fresh`."""
    read = partial(live.get_item, Key=pepper_key(), ConsistentRead=True)
    found = read()
    if "Item" not in found:
        item = pepper_key() | {"value": fresh}
        succeeds(lambda: live.put_item(Item=item, ConditionExpression=Attr("pk").not_exists()))
        found = read()
    return str(found["Item"]["value"])


@dataclass(frozen=True, slots=True)
class DynamoAccounts:
    """`Accounts` over the tables `Live` and `Exchanges`; a user without a secret gets unguessable credentials."""

    live: "Table"
    exchanges: "Table"
    pepper: str
    realms: RealmSettings = field(default_factory=RealmSettings)
    group_grants: CachedGroupGrants = field(default_factory=CachedGroupGrants)
    backoff: Backoff = BACKOFF

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
        found = items_of_tables(self.live.meta.client, keys, backoff=self.backoff) if any(keys.values()) else {}
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
        counted = succeeds(
            lambda: self.live.update_item(
                Key=failures_key(user),
                UpdateExpression="ADD #count :one",
                ExpressionAttributeNames={"#count": "count"},
                ExpressionAttributeValues={":one": 1},
                ConditionExpression=Attr("minute").eq(_minute(now)),
            )
        )
        if not counted:
            item = {"minute": _minute(now), "count": 1, "expires_at": round((now + KEPT_FOR).timestamp())}
            self.live.put_item(Item=failures_key(user) | item)

    def end_tokens(self, realm: ExchangeName, user: UserName, *, now: datetime) -> None:
        """Refuse the tokens of a user of an issuer that were issued before a time. Repeating it is harmless."""
        # Issuers write whole seconds; a token of the same second was issued after the end as likely as before.
        item = {"ended_at": int(now.timestamp()), "expires_at": round((now + TOKENS_END_FOR).timestamp())}
        self.live.put_item(Item=ended_tokens_key(realm, user) | item)

    def tokens_ended_at(self, realm: ExchangeName, user: UserName) -> datetime | None:
        """Return the time before which tokens of a user must not have been issued, or None."""
        item = self.live.get_item(Key=ended_tokens_key(realm, user), ConsistentRead=True).get("Item")
        return None if item is None else datetime.fromtimestamp(int(cast("Decimal", item["ended_at"])), UTC)

    def _account(self, name: UserName, token: TokenIdentity | None, rights: Rights, items: dict[str, Item]) -> Account:
        role = user_of(items[USER]).role if token is None else token.role
        secret = items.get("secret")
        credentials = CREDENTIALS.read(secret) if secret else StoredSecret.decoy(name, pepper=self.pepper)
        return Account(name, role, credentials, rights)


@dataclass(frozen=True, slots=True)
class DynamoUserRights:
    """`UserRights` over the tables `Live` and `Exchanges`."""

    live: "Table"
    exchanges: "Table"
    group_grants: CachedGroupGrants = field(default_factory=CachedGroupGrants)
    backoff: Backoff = BACKOFF

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
        found = items_of_tables(self.live.meta.client, keys, backoff=self.backoff)
        by_kind = {item["sk"]: item for items in found.values() for item in items}
        if granted is None:
            granted = self.group_grants.read(self.live, realm, by_kind.get(VERSION), read_at=read_at)
        return rights_in(realm, user, by_kind, granted, token=token, is_anonymous=is_anonymous)


def _failures(item: Item | None, now: datetime) -> int:
    return int(item["count"]) if item is not None and item["minute"] == Decimal(_minute(now)) else 0


def _minute(at: datetime) -> int:
    return int(at.timestamp()) // 60
