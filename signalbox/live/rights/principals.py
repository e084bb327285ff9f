"""The principals of grants: users, groups and everyone; and the words that represent them in topics."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import NewType
from urllib.parse import quote, unquote

from signalbox.errors import RejectedError
from signalbox.exchange.model.topics import shown
from signalbox.sarracenia.rights.names import UserName

GroupName = NewType("GroupName", str)
# `NAME` of a user, `@GROUP`, or `@everyone`: each joined session except anonymous ones.
PrincipalName = NewType("PrincipalName", str)

GROUP_MARK = "@"
EVERYONE = PrincipalName("@everyone")
MAXIMUM_LENGTH = 128
PLAIN_CHARACTERS = "-._@:"  # in addition to letters and digits
SEPARATOR, ENCODED_SEPARATOR = ".", "%2E"


class InvalidPrincipal(RejectedError):
    """Raised for a text that is neither the name of a user or a group nor `@everyone`."""


def canonical_name(text: str) -> str:
    """Return a name of an identity provider, such as `/lab/seq`, with its unusual characters percent-encoded.

    A first `@` is encoded too, so that no user has the name of a group's principal.
    """
    # `quote` never encodes `~`; JSON may contain a lone surrogate.
    encoded = quote(text, safe=PLAIN_CHARACTERS, errors="surrogatepass").replace("~", "%7E")
    return encoded.replace(GROUP_MARK, "%40", 1) if text.startswith(GROUP_MARK) else encoded


def parse_group_name(text: str) -> GroupName:
    """Parse the canonical name of a group. Raises `InvalidPrincipal`."""
    if GROUP_MARK + text == EVERYONE:
        raise InvalidPrincipal(f"group {text!r} is every joined session: it has no members of its own")
    return GroupName(_parsed(text, "group"))


def parse_principal(text: str) -> PrincipalName:
    """Parse a user's name, `@GROUP` or `@everyone`. Raises `InvalidPrincipal`."""
    if text == EVERYONE:
        return EVERYONE
    if text.startswith(GROUP_MARK):
        return principal_of(parse_group_name(text.removeprefix(GROUP_MARK)))
    return PrincipalName(_parsed(text, "user"))


def principal_of(group: GroupName) -> PrincipalName:
    """Return a group as a principal."""
    return PrincipalName(GROUP_MARK + group)


def group_of(principal: PrincipalName) -> GroupName | None:
    """Return the group of a principal, which is `everyone` for `@everyone`; None for a user."""
    is_group = principal.startswith(GROUP_MARK)
    return GroupName(principal.removeprefix(GROUP_MARK)) if is_group else None


def user_of(principal: PrincipalName) -> UserName | None:
    """Return the user of a principal; None for a group."""
    return None if principal.startswith(GROUP_MARK) else UserName(principal)


def word_of(name: str) -> str:
    """Return the word that represents a name in topics: a name may have dots, and a word may not."""
    return name.replace(SEPARATOR, ENCODED_SEPARATOR)


@dataclass(frozen=True, slots=True)
class Subject:
    """The words that the placeholders in patterns represent: the session's own name, and those of its groups."""

    word: str = ""
    group_words: frozenset[str] = frozenset()

    @classmethod
    def of(cls, name: str, groups: Collection[GroupName] = ()) -> "Subject":
        """Return the subject of a name and its groups."""
        return cls(word_of(name), frozenset(map(word_of, groups)))


NOBODY = Subject()


def _parsed(text: str, kind: str) -> str:
    if not 1 <= len(text) <= MAXIMUM_LENGTH or text.startswith(GROUP_MARK):
        raise InvalidPrincipal(f"{kind} {shown(text)}: expected 1 to {MAXIMUM_LENGTH} characters, the first not '@'")
    canonical = canonical_name(unquote(text))
    # Another escape of the same name, such as `%2E` of a dot, would be another user or group in the same words.
    if text != canonical:
        raise InvalidPrincipal(
            f"{kind} {shown(text)}: expected letters, digits and {' '.join(PLAIN_CHARACTERS)}, and other characters "
            f"percent-encoded: {shown(canonical)}"
        )
    return text
