"""Commands about live to the exchange's control queues. Each docstring gives the fields and the result, in JSON."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from signalbox.control.envelope import Commands
from signalbox.documents import Section, shown
from signalbox.live.admin.grants import Grant
from signalbox.live.wamp.authentication import ITERATIONS, Credentials
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.live.wamp.uris import InvalidUri
from signalbox.sarracenia.rights.names import (
    ExchangeName,
    InvalidExchangeName,
    InvalidUserName,
    UserName,
    parse_exchange_name,
    parse_user_name,
)
from signalbox.sarracenia.rights.permissions import Right

# The right to configure cannot be granted: it follows from the ownership of the exchange.
RIGHTS = (Right.READ, Right.WRITE)
HEXADECIMAL = frozenset("0123456789abcdef")
SALT_LENGTH, VERIFIER_LENGTH, KEY_LENGTH = 32, 64, 44
MAXIMUM_ITERATIONS = 1_000_000
MAXIMUM_SECRETS = 200  # of a command: eight writes of 25 items, and as many history events
# Placeholders for missing or invalid names; the problem itself is reported.
NO_REALM, NO_USER = ExchangeName("x"), UserName("_")


@dataclass(frozen=True, slots=True)
class GiveGrant:
    """`grant {user, exchange, right?, match?, uri}`; `right` is read or write, `match` exact, prefix or wildcard.

    The defaults are read and exact. Result: the grant, and `granted`: whether it is new.
    """

    user: UserName
    realm: ExchangeName
    grant: Grant


@dataclass(frozen=True, slots=True)
class TakeGrant:
    """`ungrant`, with the fields of `grant`. Result: the grant, and `ungranted`: whether it existed.

    After the result, events that are published later and were visible by this grant alone no longer reach the user.
    """

    user: UserName
    realm: ExchangeName
    grant: Grant


@dataclass(frozen=True, slots=True)
class ListGrants:
    """`grants {exchange?, user?}`. Result: [{user, exchange, right, match, uri}].

    It holds the caller's own grants and those on exchanges that the caller may configure, by default of all exchanges
    and users.
    """

    realm: ExchangeName | None
    user: UserName | None


@dataclass(frozen=True, slots=True)
class PutSecret:
    """`secret {user?, salt, verifier, iterations?, key?}`: the credentials of a user's new secret.

    The caller generates the secret and never sends it: `verifier` is the hexadecimal SHA-256 of the key that PBKDF2
    derives from it (with SHA-256, the salt's 32 hexadecimal digits as text, 32 bytes, in base64). `key` is that key,
    for users who also join by wampcra. Result: {user, methods}; `user` defaults to the caller.
    """

    user: UserName | None
    credentials: Credentials


@dataclass(frozen=True, slots=True)
class PutSecrets:
    """`secrets {secrets: [{user, salt, verifier, iterations?, key?}]}`: the credentials of up to 200 users.

    The fields are those of `secret`. Only for administrators, and all or none are stored if one is refused. Result:
    [{user, methods}], in the same order.
    """

    secrets: tuple[PutSecret, ...]


@dataclass(frozen=True, slots=True)
class ForgetSecret:
    """`forget_secret {user}`: delete a user's secret; the user's sessions check their rights again.

    Result: {user, told}; `told` is the number of those sessions. Also accepted for users who were removed.
    """

    user: UserName


Command = GiveGrant | TakeGrant | ListGrants | PutSecret | PutSecrets | ForgetSecret


def secret_fields(credentials: Credentials) -> dict[str, object]:
    """Return the fields of the command `secret` for new credentials."""
    fields = {"salt": credentials.salt, "verifier": credentials.verifier, "iterations": credentials.iterations}
    return fields if credentials.key is None else {**fields, "key": credentials.key}


def _realm(section: Section) -> ExchangeName:
    text = section.required_text("exchange")
    try:
        return parse_exchange_name(text or NO_REALM)
    except InvalidExchangeName as error:
        section.problem("exchange", str(error))
        return NO_REALM


def _user(section: Section) -> UserName:
    text = section.required_text("user")
    try:
        return parse_user_name(text) if text else NO_USER
    except InvalidUserName as error:
        section.problem("user", str(error))
        return NO_USER


def _grant(section: Section) -> Grant:
    right, match = section.text("right") or Right.READ, section.text("match") or MatchPolicy.EXACT
    if right not in RIGHTS:
        section.problem("right", f"expected one of {', '.join(RIGHTS)}, not {shown(right)}")
    if match not in set(MatchPolicy):
        section.problem("match", f"expected one of {', '.join(MatchPolicy)}, not {shown(match)}")
        match = MatchPolicy.EXACT
    return Grant(Right.WRITE if right == Right.WRITE else Right.READ, _pattern(section, MatchPolicy(match)))


def _pattern(section: Section, match: MatchPolicy) -> TopicPattern:
    if section.fields.get("uri") is None:
        section.problem("uri", 'is missing; use "" with match prefix for all topics')
    text = section.text("uri") or ""
    try:
        return TopicPattern.parse(text, match)
    except InvalidUri as error:
        section.problem("uri", str(error))
        return TopicPattern(match, "")


def _list_grants(section: Section) -> Command:
    return ListGrants(
        None if section.fields.get("exchange") is None else _realm(section),
        None if section.fields.get("user") is None else _user(section),
    )


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
    iterations = section.whole_number("iterations")
    if iterations is not None and not ITERATIONS <= iterations <= MAXIMUM_ITERATIONS:
        section.problem("iterations", f"expected {ITERATIONS} to {MAXIMUM_ITERATIONS}, not {shown(iterations)}")
    credentials = Credentials(
        salt=_hexadecimal(section, "salt", SALT_LENGTH),
        verifier=_hexadecimal(section, "verifier", VERIFIER_LENGTH),
        iterations=iterations or ITERATIONS,
        key=section.text("key"),
    )
    key = credentials.key
    if key is not None and (len(key) != KEY_LENGTH or not key.isascii() or not credentials.key_matches_verifier):
        section.problem("key", "is not the key whose SHA-256 is the verifier")
    return PutSecret(None if section.fields.get("user") is None else _user(section), credentials)


def _hexadecimal(section: Section, field: str, length: int) -> str:
    text = section.required_text(field)
    if text and (len(text) != length or not set(text) <= HEXADECIMAL):
        section.problem(field, f"expected {length} hexadecimal digits")
    return text


def _of_grant(kind: Callable[[UserName, ExchangeName, Grant], Command]) -> Callable[[Section], Command]:
    return lambda section: kind(_user(section), _realm(section), _grant(section))


SECRET_FIELDS = ("user", "salt", "verifier", "iterations", "key")
GRANT_FIELDS = ("user", "exchange", "right", "match", "uri")
COMMANDS: Commands[Command] = {
    "grant": (GRANT_FIELDS, _of_grant(GiveGrant)),
    "ungrant": (GRANT_FIELDS, _of_grant(TakeGrant)),
    "grants": (("exchange", "user"), _list_grants),
    "secret": (SECRET_FIELDS, _put_secret),
    "secrets": (("secrets",), _put_secrets),
    "forget_secret": (("user",), lambda section: ForgetSecret(_user(section))),
}
