"""The items of grants, groups and credentials in the table `Live`."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from signalbox.aws.exchange.items import FORMS, user_of
from signalbox.aws.live.items import (
    GRANTS,
    PRINCIPAL,
    SECRET,
    ended_tokens_key,
    grants_key,
    group_grants_key,
    secret_key,
)
from signalbox.aws.shared.dynamodb import ttl
from signalbox.aws.shared.expressions import Item
from signalbox.live.identity.tokens import TokenIdentity
from signalbox.live.rights.coverage import may_overlap
from signalbox.live.rights.grants import NO_GRANTS, NO_RIGHTS, Grant, GrantSet, GroupGrants, Rights
from signalbox.live.rights.principals import GroupName, PrincipalName
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.sarracenia.rights.names import ExchangeName, UserName

USER = "user"  # the sort key of a user's record
# The lists of an item `principal`.
GROUPS, DENIES, LIMITED = "groups", "denies", "limited_grants"
ItemsByKind = Mapping[str, Item]  # by sort key
TOKENS_END_FOR = timedelta(days=31)  # longer than any sensible token is valid


def grants_item(realm: ExchangeName, user: str, grants: Iterable[Grant], *, version: int) -> Item:
    """Return the item of a user's own grants that no deny limits; `version` grows with every change."""
    return grants_key(realm, user) | {"realm": realm, "user": user, "grants": documents(grants), "version": version}


def group_grants_item(realm: ExchangeName, principal: PrincipalName, granted: GrantSet, *, version: int) -> Item:
    """Return the item of the grants and denies of a group in a realm."""
    lists = {"grants": documents(granted.grants), "denies": documents(granted.denies)}
    return group_grants_key(realm, principal) | {"realm": realm, "principal": principal, **lists, "version": version}


def ended_tokens_item(realm: ExchangeName, user: UserName, *, now: datetime) -> Item:
    """Return the item that refuses the tokens of an issuer's user that were issued before `now`."""
    # Issuers write whole seconds; a token of the same second was issued after the end as likely as before.
    return ended_tokens_key(realm, user) | {"ended_at": int(now.timestamp())} | ttl(now + TOKENS_END_FOR)


def documents(grants: Iterable[Grant]) -> list[dict[str, str]]:
    """Return grants as a list in an item."""
    return [GRANT.write(grant) for grant in grants]


def grants_of(item: Item | None, attribute: str = "grants") -> tuple[Grant, ...]:
    """Return the grants in a list of an item, by default in `grants`; an absent item or list has none."""
    return tuple(GRANT.read(one) for one in (item or {}).get(attribute, ()))


def own_grants_of(items: ItemsByKind) -> GrantSet:
    """Return a user's own grants and denies, given the items `grants` and `principal`."""
    principal = items.get(PRINCIPAL)
    grants = (*grants_of(items.get(GRANTS)), *grants_of(principal, LIMITED))
    return GrantSet(grants, grants_of(principal, DENIES)) if grants or principal else NO_GRANTS


def stage_groups_of(item: Item | None) -> frozenset[GroupName]:
    """Return the groups of the stage of an item `principal`."""
    return frozenset(map(GroupName, (item or {}).get(GROUPS, ())))


def granted_split(granted: GrantSet) -> tuple[tuple[Grant, ...], tuple[Grant, ...]]:
    """Return the grants that no deny of the user overlaps, and those that one may overlap."""
    limited = tuple(
        grant
        for grant in granted.grants
        if any(deny.right is grant.right and may_overlap(deny.pattern, grant.pattern) for deny in granted.denies)
    )
    return tuple(grant for grant in granted.grants if grant not in limited), limited


def rights_in(
    realm: ExchangeName,
    name: UserName,
    items: ItemsByKind,
    group_grants: GroupGrants,
    *,
    token: TokenIdentity | None = None,
    is_anonymous: bool = False,
) -> Rights:
    """Return the rights of a user, or of a token's user, given the items `user`, `grants` and `principal`.

    An unknown user has none, and neither has a token's user whose name is that of a user of the stage.
    """
    if (token is None) is not (USER in items):
        return NO_RIGHTS
    own, groups = own_grants_of(items), stage_groups_of(items.get(PRINCIPAL))
    if token is not None:
        every = groups.union(map(GroupName, token.groups))
        return Rights.of_token(realm, user=name, role=token.role, grants=own, groups=every, group_grants=group_grants)
    user = user_of(items[USER])
    return Rights.in_realm(
        realm,
        user=name,
        role=user.role,
        ownership=user.ownership,
        grants=own,
        groups=groups,
        group_grants=group_grants,
        is_anonymous=is_anonymous,
    )


def credentials_in(items: ItemsByKind) -> StoredSecret | None:
    """Return a user's credentials, given the item `secret`; None for a user without a secret."""
    return CREDENTIALS.read(items[SECRET]) if SECRET in items else None


def credentials_item(user: UserName, credentials: StoredSecret) -> Item:
    """Return the item of a user's credentials."""
    return secret_key(user) | CREDENTIALS.write(credentials)


CREDENTIALS = FORMS.record(StoredSecret, sparse=["key"])
# A pattern is not parsed: a stored grant stays valid if the rules for patterns change.
GRANT = FORMS.record(Grant, flat=["pattern"])
