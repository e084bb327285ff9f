"""Commands about live to the exchange's control queues. Each docstring gives the fields and the result, in JSON."""

from collections.abc import Mapping
from dataclasses import dataclass

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.rights.grants import Grant
from signalbox.live.rights.principals import GroupName, PrincipalName
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right, Role


class Command:
    """A command about live."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class GiveGrant(Command):
    """`grant {user, exchange, right?, match?, uri, deny?, dry_run?}`; `right` is read or write.

    `user` is a user, `@GROUP` or `@everyone`; `match` is exact, prefix or wildcard. The defaults are read and exact.
    With `deny` the right is taken away instead. Result: the grant, and `granted`: whether it is new. With `dry_run`
    nothing changes, and the result has the `subscriptions` that would end or get more or fewer topics.
    """

    principal: PrincipalName
    realm: ExchangeName
    grant: Grant
    is_deny: bool = False
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class TakeGrant(Command):
    """`ungrant`, with the fields of `grant`. Result: the grant, and `ungranted`: whether it existed.

    After the result, events that are published later and were visible by this grant alone no longer reach the user.
    """

    principal: PrincipalName
    realm: ExchangeName
    grant: Grant
    is_deny: bool = False
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ListGrants(Command):
    """`grants {exchange?, user?}`. Result: [{user, exchange, right, match, uri, deny?}].

    It holds the grants of the caller and its groups, and those on exchanges that the caller may configure, by default
    of all exchanges, users and groups.
    """

    realm: ExchangeName | None
    principal: PrincipalName | None


@dataclass(frozen=True, slots=True)
class ChangeMembers(Command):
    """`group_add` or `group_remove {exchange, group, users, dry_run?}`: change the members of a group of the stage.

    Result: {exchange, group, changed, unchanged}, two lists of users. After the result of `group_remove`, events that
    are published later and were visible by the group alone no longer reach the users.
    """

    realm: ExchangeName
    group: GroupName
    users: tuple[UserName, ...]
    is_removal: bool
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class SetUserGroups(Command):
    """`user_groups {exchange, groups}`: set the groups of the stage of up to 20 users: {user: [group, ...], ...}.

    Result: {exchange, changed, left}: the number of changed memberships, and of those left for the same command, sent
    again. One command changes at most 200, removals first, which have the effects of `group_remove`.
    """

    realm: ExchangeName
    groups: Mapping[UserName, frozenset[GroupName]]


@dataclass(frozen=True, slots=True)
class ListMembers(Command):
    """`groups {exchange, group?}`. Result: [{exchange, group, user}].

    It holds the caller's own groups, or all if the caller may configure the exchange.
    """

    realm: ExchangeName
    group: GroupName | None


@dataclass(frozen=True, slots=True)
class ExplainAccess(Command):
    """`explain {user, exchange?, topic, right?, groups?, role?}`: why a user may or may not read or write a topic.

    `groups` are those in the token of an identity provider's user, `role` its role. Result: for each realm (by default
    each that the caller may configure, or each for the caller's own user) {user, exchange, topic, right, permitted,
    groups, reasons}; a reason has `kind`, `effect` (permits, refuses or none) and `why`.
    """

    user: UserName
    realm: ExchangeName | None
    topic: RoutingKey
    right: Right
    groups: tuple[GroupName, ...] | None = None
    role: Role = Role.SUBSCRIBER


@dataclass(frozen=True, slots=True)
class PutSecret(Command):
    """`secret {user?, salt, verifier, key?}`: the credentials of a user's new secret.

    The caller generates the secret and never sends it: `verifier` is the hexadecimal SHA-256 of the key that PBKDF2
    derives from it (with SHA-256, the salt's 32 hexadecimal digits as text, 32 bytes, in base64). `key` is that key,
    for users who also join by wampcra. Sessions that have joined by an earlier secret end. Result: {user, methods};
    `user` defaults to the caller.
    """

    user: UserName | None
    credentials: StoredSecret


@dataclass(frozen=True, slots=True)
class PutSecrets(Command):
    """`secrets {secrets: [{user, salt, verifier, key?}]}`: the credentials of up to 200 users.

    The fields are those of `secret`. Only for administrators, and all or none are stored if one is refused. Result:
    [{user, methods}], in the same order.
    """

    secrets: tuple[PutSecret, ...]


@dataclass(frozen=True, slots=True)
class ForgetUser(Command):
    """`forget_user {user}`: delete a user's secret, grants, denies and memberships, and end the sessions and tokens.

    Result: {user, ended, unlisted, notified_sessions}; `ended` has {exchange, grants, denies, groups} of each realm
    where the user had any. Send it before the user is removed, and again afterwards.
    """

    user: UserName


def secret_fields(credentials: StoredSecret) -> dict[str, object]:
    """Return the fields of the command `secret` for new credentials."""
    fields: dict[str, object] = {"salt": credentials.salt, "verifier": credentials.verifier}
    return fields if credentials.key is None else {**fields, "key": credentials.key}
