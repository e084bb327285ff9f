"""Permissions by names: the strict rule, and the loose one of Sarracenia's regular expressions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.sarracenia.rights.names import UserName, parse_user_name, readable_name, sqs_name
from signalbox.sarracenia.rights.permissions import (
    Ownership,
    Right,
    Role,
    is_permitted,
    permitted_beginnings,
    permitted_names,
)

ALICE = parse_user_name("alice")
NAMES = [
    *("q_alice", "q_alice_x", "q_alice.subscribe.c", "q_alice2", "q_alice-b", "q_bob_x", "xs_alice", "xs_alice_x"),
    *("xs_alice_logs.fifo", "xs_alice.fifo", "xs_alicex", "xs_bob", "xl_alice", "xr_alice_x", "xl_bob", "xpublic"),
    *("xpublic.fifo", "xs_bob_public", "xs_bobpublic", "xpublic2", "xx_alice"),
]
OWN_QUEUES = {"q_alice", "q_alice_x", "q_alice.subscribe.c"}
OWN_EXCHANGES = {"xs_alice", "xs_alice_x", "xs_alice_logs.fifo", "xs_alice.fifo"}
OWN = OWN_QUEUES | OWN_EXCHANGES
PUBLIC = {"xpublic", "xpublic.fifo", "xs_bob_public"}
READABLE = OWN | PUBLIC | {"xl_alice", "xr_alice_x"}
EVERYTHING = set(NAMES)
STRICT = [
    *((role, right, EVERYTHING) for role in (Role.ADMIN, Role.FEEDER) for right in Right),
    (Role.SOURCE, Right.CONFIGURE, OWN),
    (Role.SOURCE, Right.WRITE, OWN),
    (Role.SOURCE, Right.READ, READABLE),
    (Role.SUBSCRIBER, Right.CONFIGURE, OWN_QUEUES),
    (Role.SUBSCRIBER, Right.WRITE, OWN_QUEUES | {"xs_alice", "xs_alice.fifo"}),
    (Role.SUBSCRIBER, Right.READ, READABLE),
]
# rabbitmq_admin.py of sr3 3.3.1, l. 80-125; U is the user.
REGEXES = {
    **{(role, right): ".*" for role in (Role.ADMIN, Role.FEEDER) for right in Right},
    (Role.SOURCE, Right.CONFIGURE): "^q_U.*|^xs_U.*",
    (Role.SOURCE, Right.WRITE): "^q_U.*|^xs_U.*",
    (Role.SOURCE, Right.READ): "^q_U.*|^x[lrs]_U.*|^x.*public$",
    (Role.SUBSCRIBER, Right.CONFIGURE): "^q_U.*",
    (Role.SUBSCRIBER, Right.WRITE): "^q_U.*|^xs_U$",
    (Role.SUBSCRIBER, Right.READ): "^q_U.*|^x[lrs]_U.*|^x.*public$",
}


@pytest.mark.parametrize(("role", "right", "expected"), STRICT, ids=[f"{role} {right}" for role, right, _ in STRICT])
def test_a_user_has_rights_on_names_that_contain_the_user_name(role, right, expected):
    assert {name for name in NAMES if is_permitted(ALICE, role, right, name=name)} == expected


@given(
    st.sampled_from(sorted(REGEXES)),
    st.text(st.sampled_from("ab2-"), min_size=1, max_size=3).map(UserName),
    st.sampled_from(["", "q_", "xs_", "xl_", "xr_", "x", "xx_"]),
    st.text(st.sampled_from("ab2_-"), max_size=4),
    st.sampled_from(["", "public", "_x"]),
)
def test_the_loose_rule_equals_sarracenias_regular_expressions(kind, user, prefix, middle, end):
    name = prefix + middle + end
    role, right = kind

    permitted = is_permitted(user, role, right, name=name, ownership=Ownership.LOOSE)

    assert permitted == bool(re.match(REGEXES[kind].replace("U", user), name))


def test_the_loose_rule_gives_alice_rights_on_names_of_alice2():
    assert is_permitted(ALICE, Role.SOURCE, Right.WRITE, name="xs_alice2", ownership=Ownership.LOOSE)


@given(
    st.sampled_from(Role),
    st.sampled_from(Right),
    st.sampled_from(Ownership),
    st.text(alphabet="abe_-./#é2", max_size=4),
)
def test_each_permitted_name_has_a_permitted_beginning(role, right, ownership, rest):
    for user in (ALICE, parse_user_name("al-ice")):
        beginnings = permitted_beginnings(user, role, right, ownership=ownership)
        queues = (f"q_{user}{rest}", f"q_{user.replace('-', '.')}{rest}", f"q_{user.replace('-', '/')}{rest}")
        for name in (*NAMES, *queues, f"xs_{user}{rest}", f"x{rest}_public"):
            if is_permitted(user, role, right, name=name, ownership=ownership):
                assert name.startswith(tuple(beginnings))


def test_beginnings_of_names_are_as_long_as_the_patterns_allow():
    assert permitted_beginnings(ALICE, Role.SOURCE, Right.READ) == ["q_alice", "x"]
    assert permitted_beginnings(ALICE, Role.SOURCE, Right.CONFIGURE) == ["q_alice", "xs_alice"]
    assert permitted_beginnings(parse_user_name("al-ice"), Role.SUBSCRIBER, Right.WRITE) == ["q_al", "xs_al"]
    assert permitted_beginnings(ALICE, Role.FEEDER, Right.READ) == [""]


def test_permitted_names_are_patterns():
    assert permitted_names(ALICE, Role.SUBSCRIBER, Right.WRITE) == ("q_alice", "q_alice_*", "xs_alice")
    assert permitted_names(ALICE, Role.SOURCE, Right.WRITE, ownership=Ownership.LOOSE) == ("q_alice*", "xs_alice*")


@given(st.text(st.sampled_from("_.-2é"), max_size=90).map(lambda rest: f"q_alice{rest}"))
def test_a_policy_on_sqs_names_decides_as_the_rule_does(name):
    in_sqs = sqs_name(name)

    for right in Right:
        asked = is_permitted(ALICE, Role.SUBSCRIBER, right, name=name)
        assert is_permitted(ALICE, Role.SUBSCRIBER, right, name=in_sqs) == asked


def test_only_a_dot_becomes_an_underscore():
    assert readable_name("q_alice.x@y") == "q_alice_x-y"
