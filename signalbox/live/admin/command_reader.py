"""The reader of commands about live: the fields of each, parsed into a command."""

from collections import Counter
from collections.abc import Callable

from signalbox.control.envelope import Commands
from signalbox.documents import Section, shown
from signalbox.exchange.control.command_reader import read_user
from signalbox.exchange.model.topics import RoutingKey, parse_routing_key
from signalbox.live.admin.commands import (
    ChangeMembers,
    Command,
    ExplainAccess,
    ForgetUser,
    GiveGrant,
    ListGrants,
    ListMembers,
    PutSecret,
    PutSecrets,
    SetUserGroups,
    TakeGrant,
)
from signalbox.live.admin.fields import (
    read_grant,
    read_group,
    read_member,
    read_principal,
    read_realm,
    read_right,
)
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.sarracenia.rights.permissions import Role

HEXADECIMAL = frozenset("0123456789abcdef")
SALT_LENGTH, VERIFIER_LENGTH, KEY_LENGTH = 32, 64, 44
MAXIMUM_USERS = 100  # of one command about a group
MAXIMUM_SET_USERS = 20  # with up to 1,000 groups each
# Those of a token's user: its claim has no other.
TOKEN_ROLES = (Role.SOURCE, Role.SUBSCRIBER)
MAXIMUM_SECRETS = 200  # of a command: eight writes of 25 items, and as many history events


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
        section.parsed("topic", parse_routing_key, default=RoutingKey("")),
        read_right(section),
        None if groups is None else tuple(read_group(section, one, "groups") for one in section.texts("groups")),
        _token_role(section),
    )


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
    credentials = StoredSecret(
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
