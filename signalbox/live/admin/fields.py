"""Readers of the fields that several commands about live share; a problem is reported with its field."""

from signalbox.documents import Section, shown
from signalbox.exchange.control.command_reader import NO_USER
from signalbox.live.rights.coverage import check_placeholders
from signalbox.live.rights.grants import Grant
from signalbox.live.rights.principals import (
    GroupName,
    PrincipalName,
    parse_group_name,
    parse_principal,
    user_of,
)
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.live.wamp.uris import InvalidUri
from signalbox.sarracenia.rights.names import (
    ExchangeName,
    UserName,
    parse_exchange_name,
)
from signalbox.sarracenia.rights.permissions import Right

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
    if section.fields.get("uri") is None:
        section.problem("uri", 'is missing; use "" with match prefix for all topics')
    text = section.text("uri") or ""
    try:
        pattern = TopicPattern.parse(text, match)
        check_placeholders(pattern)
    except InvalidUri as error:
        section.problem("uri", str(error))
        return TopicPattern(match, "")
    return pattern
