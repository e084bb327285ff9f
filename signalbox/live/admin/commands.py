"""Commands about live to the exchange's control queues. Each docstring gives the fields and the result, in JSON."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from signalbox.control.envelope import Commands
from signalbox.documents import Section, shown
from signalbox.exchange.control.command_reader import read_user
from signalbox.exchange.model.topics import InvalidRoutingKey, RoutingKey, parse_routing_key
from signalbox.live.admin.fields import (
    read_grant,
    read_group,
    read_member,
    read_principal,
    read_realm,
    read_right,
)
from signalbox.live.rights.grants import Grant
from signalbox.live.rights.principals import GroupName, PrincipalName
from signalbox.live.wamp.authentication import Credentials
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right, Role

HEXADECIMAL = frozenset("0123456789abcdef")
SALT_LENGTH, VERIFIER_LENGTH, KEY_LENGTH = 32, 64, 44
MAXIMUM_USERS = 100  # of one command about a group
MAXIMUM_SET_USERS = 20  # with up to 1,000 groups each
# Those of a token's user: its claim has no other.
TOKEN_ROLES = (Role.SOURCE, Role.SUBSCRIBER)
MAXIMUM_SECRETS = 200  # of a command: eight writes of 25 items, and as many history events


@dataclass(frozen=True, slots=True)
class GiveGrant:
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
class TakeGrant:
    """`ungrant`, with the fields of `grant`. Result: the grant, and `ungranted`: whether it existed.

    After the result, events that are published later and were visible by this grant alone no longer reach the user.
    """

    principal: PrincipalName
    realm: ExchangeName
    grant: Grant
    is_deny: bool = False
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ListGrants:
    """`grants {exchange?, user?}`. Result: [{user, exchange, right, match, uri, deny?}].

    It holds the grants of the caller and its groups, and those on exchanges that the caller may configure, by default
    of all exchanges, users and groups.
    """

    realm: ExchangeName | None
    principal: PrincipalName | None


@dataclass(frozen=True, slots=True)
class ChangeMembers:
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
class SetUserGroups:
    """`user_groups {exchange, groups}`: set the groups of the stage of up to 20 users: {user: [group, ...], ...}.

    Result: {exchange, changed, left}, the number of changed memberships and of those that the same command, sent
    again, changes: one command changes at most 200, first those that end. They end as by `group_remove`.
    """

    realm: ExchangeName
    groups: Mapping[UserName, frozenset[GroupName]]


@dataclass(frozen=True, slots=True)
class ListMembers:
    """`groups {exchange, group?}`. Result: [{exchange, group, user}].

    It holds the caller's own groups, or all if the caller may configure the exchange.
    """

    realm: ExchangeName
    group: GroupName | None


@dataclass(frozen=True, slots=True)
class ExplainAccess:
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
class PutSecret:
    """`secret {user?, salt, verifier, key?}`: the credentials of a user's new secret.

    The caller generates the secret and never sends it: `verifier` is the hexadecimal SHA-256 of the key that PBKDF2
    derives from it (with SHA-256, the salt's 32 hexadecimal digits as text, 32 bytes, in base64). `key` is that key,
    for users who also join by wampcra. Sessions that have joined by an earlier secret end. Result: {user, methods};
    `user` defaults to the caller.
    """

    user: UserName | None
    credentials: Credentials


@dataclass(frozen=True, slots=True)
class PutSecrets:
    """`secrets {secrets: [{user, salt, verifier, key?}]}`: the credentials of up to 200 users.

    The fields are those of `secret`. Only for administrators, and all or none are stored if one is refused. Result:
    [{user, methods}], in the same order.
    """

    secrets: tuple[PutSecret, ...]


@dataclass(frozen=True, slots=True)
class ForgetUser:
    """`forget_user {user}`: delete a user's secret, grants, denies and memberships, and end the user's sessions.

    Result: {user, ended, notified_sessions}; `ended` has {exchange, grants, denies, groups} of each realm where the
    user had any. Send it after the user was removed.
    """

    user: UserName


Command = (
    GiveGrant
    | TakeGrant
    | ListGrants
    | ChangeMembers
    | SetUserGroups
    | ListMembers
    | ExplainAccess
    | PutSecret
    | PutSecrets
    | ForgetUser
)


def secret_fields(credentials: Credentials) -> dict[str, object]:
    """Return the fields of the command `secret` for new credentials."""
    fields: dict[str, object] = {"salt": credentials.salt, "verifier": credentials.verifier}
    return fields if credentials.key is None else {**fields, "key": credentials.key}


def _of_grant(kind: type[GiveGrant | TakeGrant]) -> Callable[[Section], Command]:
    return lambda section: kind(
        read_principal(section),
        read_realm(section),
        read_grant(section),
        is_deny=section.flag("deny"),
        is_dry_run=section.flag("dry_run"),
    )


def _list_grants(section: Section) -> Command:
    return ListGrants(
        None if section.fields.get("exchange") is None else read_realm(section),
        None if section.fields.get("user") is None else read_principal(section),
    )


def _of_members(*, is_removal: bool) -> Callable[[Section], Command]:
    def read(section: Section) -> Command:
        users = section.texts("users")
        if not 1 <= len(users) <= MAXIMUM_USERS:
            section.problem("users", f"expected 1 to {MAXIMUM_USERS} users, not {len(users)}")
        return ChangeMembers(
            read_realm(section),
            read_group(section, section.required_text("group")),
            tuple(dict.fromkeys(read_member(section, user) for user in users)),
            is_removal=is_removal,
            is_dry_run=section.flag("dry_run"),
        )

    return read


def _set_user_groups(section: Section) -> Command:
    groups = section.section("groups")
    if not 1 <= len(groups.fields) <= MAXIMUM_SET_USERS:
        section.problem("groups", f"expected 1 to {MAXIMUM_SET_USERS} users, not {len(groups.fields)}")
    found = {
        read_member(section, user): frozenset(read_group(groups, one, user) for one in groups.texts(user))
        for user in groups.fields
    }
    return SetUserGroups(read_realm(section), found)


def _list_members(section: Section) -> Command:
    group = section.text("group")
    return ListMembers(read_realm(section), None if group is None else read_group(section, group))


def _explain(section: Section) -> Command:
    groups = section.fields.get("groups")
    return ExplainAccess(
        read_member(section, section.required_text("user") or "_", "user"),
        None if section.fields.get("exchange") is None else read_realm(section),
        _topic(section),
        read_right(section),
        None if groups is None else tuple(read_group(section, one, "groups") for one in section.texts("groups")),
        _token_role(section),
    )


def _topic(section: Section) -> RoutingKey:
    try:
        return parse_routing_key(section.required_text("topic"))
    except InvalidRoutingKey as error:
        section.problem("topic", str(error))
        return RoutingKey("")


def _token_role(section: Section) -> Role:
    role = section.text("role") or Role.SUBSCRIBER
    if role not in TOKEN_ROLES:
        section.problem("role", f"expected one of {', '.join(TOKEN_ROLES)}, not {shown(role)}")
        return Role.SUBSCRIBER
    return Role(role)


def _put_secrets(section: Section) -> Command:
    sections = list(section.sections("secrets"))
    if not 1 <= len(sections) <= MAXIMUM_SECRETS:
        section.problem("secrets", f"expected 1 to {MAXIMUM_SECRETS} secrets, not {len(sections)}")
    found = tuple(map(_named_secret, sections[:MAXIMUM_SECRETS]))
    repeated = [str(name) for name, count in Counter(one.user for one in found).items() if count > 1 and name]
    if repeated:
        section.problem("secrets", f"users {', '.join(repeated)} have several")
    return PutSecrets(found)


def _named_secret(section: Section) -> PutSecret:
    section.refuse_unknown(SECRET_FIELDS)
    section.required_text("user")
    return _put_secret(section)


def _put_secret(section: Section) -> PutSecret:
    credentials = Credentials(
        salt=_hexadecimal(section, "salt", SALT_LENGTH),
        verifier=_hexadecimal(section, "verifier", VERIFIER_LENGTH),
        key=section.text("key"),
    )
    key = credentials.key
    if key is not None and (len(key) != KEY_LENGTH or not key.isascii() or not credentials.key_matches_verifier):
        section.problem("key", "is not the key whose SHA-256 is the verifier")
    return PutSecret(None if section.fields.get("user") is None else read_user(section), credentials)


def _hexadecimal(section: Section, field: str, length: int) -> str:
    text = section.required_text(field)
    if text and (len(text) != length or not set(text) <= HEXADECIMAL):
        section.problem(field, f"expected {length} hexadecimal digits")
    return text


SECRET_FIELDS = ("user", "salt", "verifier", "key")
GRANT_FIELDS = ("user", "exchange", "right", "match", "uri", "deny", "dry_run")
MEMBER_FIELDS = ("exchange", "group", "users", "dry_run")
COMMANDS: Commands[Command] = {
    "grant": (GRANT_FIELDS, _of_grant(GiveGrant)),
    "ungrant": (GRANT_FIELDS, _of_grant(TakeGrant)),
    "grants": (("exchange", "user"), _list_grants),
    "group_add": (MEMBER_FIELDS, _of_members(is_removal=False)),
    "group_remove": (MEMBER_FIELDS, _of_members(is_removal=True)),
    "user_groups": (("exchange", "groups"), _set_user_groups),
    "groups": (("exchange", "group"), _list_members),
    "explain": (("user", "exchange", "topic", "right", "groups", "role"), _explain),
    "secret": (SECRET_FIELDS, _put_secret),
    "secrets": (("secrets",), _put_secrets),
    "forget_user": (("user",), lambda section: ForgetUser(read_user(section))),
}
