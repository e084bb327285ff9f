"""The reader of commands about live: the fields of each, parsed into a command."""

from collections import Counter
from collections.abc import Callable

from signalbox.control.envelope import Commands
from signalbox.documents import Section, shown
from signalbox.exchange.control.command_reader import NO_USER, read_user
from signalbox.exchange.model.topics import RoutingKey, parse_routing_key
from signalbox.live.admin import commands
from signalbox.live.rights.coverage import check_placeholders
from signalbox.live.rights.grants import Grant
from signalbox.live.rights.principals import GroupName, PrincipalName, parse_group_name, parse_principal, user_of
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName, parse_exchange_name
from signalbox.sarracenia.rights.permissions import Right, Role

# The right to configure cannot be granted: it follows from the ownership of the exchange.
RIGHTS = (Right.READ, Right.WRITE)
# Placeholders for missing or invalid names; the problem itself is reported.
NO_REALM, NO_GROUP = ExchangeName("x"), GroupName("_")


def read_realm(section: Section) -> ExchangeName:
    """Return the field `exchange`."""
    return section.parsed("exchange", parse_exchange_name, default=NO_REALM)


def read_principal(section: Section) -> PrincipalName:
    """Return the field `user`: a user of the stage or of an identity provider, `@GROUP` or `@everyone`."""
    return section.parsed("user", parse_principal, default=PrincipalName(NO_USER))


def read_member(section: Section, text: str, field: str = "users") -> UserName:
    """Return a user of the stage or of an identity provider."""
    user = section.attempt(field, lambda: user_of(parse_principal(text)), default=NO_USER)
    if user is None:
        section.problem(field, f"expected users, not {shown(text)}: groups have no groups as members")
    return user or NO_USER


def read_group(section: Section, text: str, field: str = "group") -> GroupName:
    """Return the name of a group."""
    return section.attempt(field, lambda: parse_group_name(text), default=NO_GROUP) if text else NO_GROUP


def read_right(section: Section) -> Right:
    """Return the field `right`; the default is to read."""
    right = section.text("right") or Right.READ
    if right not in RIGHTS:
        section.problem("right", f"expected one of {', '.join(RIGHTS)}, not {shown(right)}")
    return Right.WRITE if right == Right.WRITE else Right.READ


def read_grant(section: Section) -> Grant:
    """Return the fields `right`, `match` and `uri`."""
    right, match = read_right(section), section.text("match") or MatchPolicy.EXACT
    if match not in set(MatchPolicy):
        section.problem("match", f"expected one of {', '.join(MatchPolicy)}, not {shown(match)}")
        match = MatchPolicy.EXACT
    return Grant(right, _pattern(section, MatchPolicy(match)))


def _pattern(section: Section, match: MatchPolicy) -> TopicPattern:
    def checked(text: str) -> TopicPattern:
        pattern = TopicPattern.parse(text, match)
        check_placeholders(pattern)
        return pattern

    if section.fields.get("uri") is None:
        section.problem("uri", 'is missing; use "" with match prefix for all topics')
    text, none = section.text("uri"), TopicPattern(match, "")
    return none if text is None else section.attempt("uri", lambda: checked(text), default=none)


HEXADECIMAL = frozenset("0123456789abcdef")
SALT_LENGTH, VERIFIER_LENGTH, KEY_LENGTH = 32, 64, 44
MAXIMUM_USERS = 100  # of one command about a group
MAXIMUM_SET_USERS = 20  # with up to 1,000 groups each
# Those of a token's user: its claim has no other.
TOKEN_ROLES = (Role.SOURCE, Role.SUBSCRIBER)
MAXIMUM_SECRETS = 200  # of a command: eight writes of 25 items, and as many history events


def _of_grant(kind: type[commands.GiveGrant | commands.TakeGrant]) -> Callable[[Section], commands.Command]:
    return lambda section: kind(
        read_principal(section),
        read_realm(section),
        read_grant(section),
        is_deny=section.flag("deny"),
        is_dry_run=section.flag("dry_run"),
    )


def _list_grants(section: Section) -> commands.Command:
    return commands.ListGrants(
        None if section.fields.get("exchange") is None else read_realm(section),
        None if section.fields.get("user") is None else read_principal(section),
    )


def _of_members(*, is_removal: bool) -> Callable[[Section], commands.Command]:
    def read(section: Section) -> commands.Command:
        users = section.texts("users")
        if not 1 <= len(users) <= MAXIMUM_USERS:
            section.problem("users", f"expected 1 to {MAXIMUM_USERS} users, not {len(users)}")
        return commands.ChangeMembers(
            read_realm(section),
            read_group(section, section.required_text("group")),
            tuple(dict.fromkeys(read_member(section, user) for user in users)),
            is_removal=is_removal,
            is_dry_run=section.flag("dry_run"),
        )

    return read


def _set_user_groups(section: Section) -> commands.Command:
    groups = section.section("groups")
    if not 1 <= len(groups.fields) <= MAXIMUM_SET_USERS:
        section.problem("groups", f"expected 1 to {MAXIMUM_SET_USERS} users, not {len(groups.fields)}")
    found = {
        read_member(section, user): frozenset(read_group(groups, one, user) for one in groups.texts(user))
        for user in groups.fields
    }
    return commands.SetUserGroups(read_realm(section), found)


def _list_members(section: Section) -> commands.Command:
    group = section.text("group")
    return commands.ListMembers(read_realm(section), None if group is None else read_group(section, group))


def _explain(section: Section) -> commands.Command:
    groups = section.fields.get("groups")
    return commands.ExplainAccess(
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


def _put_secrets(section: Section) -> commands.Command:
    sections = list(section.sections("secrets"))
    if not 1 <= len(sections) <= MAXIMUM_SECRETS:
        section.problem("secrets", f"expected 1 to {MAXIMUM_SECRETS} secrets, not {len(sections)}")
    found = tuple(map(_named_secret, sections[:MAXIMUM_SECRETS]))
    repeated = [str(name) for name, count in Counter(one.user for one in found).items() if count > 1 and name]
    if repeated:
        section.problem("secrets", f"users {', '.join(repeated)} have several")
    return commands.PutSecrets(found)


def _named_secret(section: Section) -> commands.PutSecret:
    section.refuse_unknown(SECRET_FIELDS)
    section.required_text("user")
    return _put_secret(section)


def _put_secret(section: Section) -> commands.PutSecret:
    credentials = StoredSecret(
        salt=_hexadecimal(section, "salt", SALT_LENGTH),
        verifier=_hexadecimal(section, "verifier", VERIFIER_LENGTH),
        key=section.text("key"),
    )
    key = credentials.key
    if key is not None and (len(key) != KEY_LENGTH or not key.isascii() or not credentials.key_matches_verifier):
        section.problem("key", "is not the key whose SHA-256 is the verifier")
    return commands.PutSecret(None if section.fields.get("user") is None else read_user(section), credentials)


def _hexadecimal(section: Section, field: str, length: int) -> str:
    text = section.required_text(field)
    if text and (len(text) != length or not set(text) <= HEXADECIMAL):
        section.problem(field, f"expected {length} hexadecimal digits")
    return text


SECRET_FIELDS = ("user", "salt", "verifier", "key")
GRANT_FIELDS = ("user", "exchange", "right", "match", "uri", "deny", "dry_run")
MEMBER_FIELDS = ("exchange", "group", "users", "dry_run")
COMMANDS: Commands[commands.Command] = {
    "grant": (GRANT_FIELDS, _of_grant(commands.GiveGrant)),
    "ungrant": (GRANT_FIELDS, _of_grant(commands.TakeGrant)),
    "grants": (("exchange", "user"), _list_grants),
    "group_add": (MEMBER_FIELDS, _of_members(is_removal=False)),
    "group_remove": (MEMBER_FIELDS, _of_members(is_removal=True)),
    "user_groups": (("exchange", "groups"), _set_user_groups),
    "groups": (("exchange", "group"), _list_members),
    "explain": (("user", "exchange", "topic", "right", "groups", "role"), _explain),
    "secret": (SECRET_FIELDS, _put_secret),
    "secrets": (("secrets",), _put_secrets),
    "forget_user": (("user",), lambda section: commands.ForgetUser(read_user(section))),
}
