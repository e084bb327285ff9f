"""Names of users and groups as principals of grants, and as words of topics."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.live.rights.principals import (
    EVERYONE,
    GroupName,
    InvalidPrincipal,
    PrincipalName,
    canonical_name,
    group_of,
    parse_group_name,
    parse_principal,
    principal_of,
    user_of,
    word_of,
)


@pytest.mark.parametrize(
    ("text", "user", "group"),
    [
        ("ann", "ann", None),
        ("ann@x.org", "ann@x.org", None),
        ("@lab-a", None, "lab-a"),
        ("@%2Flab%2Fa", None, "%2Flab%2Fa"),
        ("@everyone", None, "everyone"),
    ],
)
def test_principals_are_users_groups_and_everyone(text: str, user: str | None, group: str | None) -> None:
    principal = parse_principal(text)

    assert (principal, user_of(principal), group_of(principal)) == (text, user, group)


@pytest.mark.parametrize(
    "text", ["", "@", "@@lab", "a b", "/lab", "x" * 129, "a#b", "{user}", "ä", "a%2Eb", "a%2", "%FF"]
)
def test_other_texts_are_no_principals(text: str) -> None:
    with pytest.raises(InvalidPrincipal):
        parse_principal(text)


def test_an_invalid_name_is_shown_as_it_is_written() -> None:
    with pytest.raises(InvalidPrincipal, match=r"percent-encoded: '%2Flab%20a%2F'"):
        parse_group_name("/lab a%2F")


def test_everyone_has_no_members() -> None:
    assert principal_of(GroupName("everyone")) == EVERYONE
    with pytest.raises(InvalidPrincipal, match="every joined session"):
        parse_group_name("everyone")


@given(st.text(min_size=1), st.text(min_size=1))
def test_different_names_have_different_words(one: str, other: str) -> None:
    assert (word_of(canonical_name(one)) == word_of(canonical_name(other))) is (one == other)


# Names come from UTF-8 texts: a lone surrogate in a token's claim makes a name that no command accepts.
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)


@given(texts.filter(lambda text: len(canonical_name(text)) <= 128))
def test_a_canonical_name_is_a_users_name_and_one_word(text: str) -> None:
    name = canonical_name(text)

    assert parse_principal(name) == PrincipalName(name)
    assert user_of(parse_principal(name)) == name
    assert "." not in word_of(name)
