"""Names of exchanges, queues and users, and their SQS names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.queues import InvalidQueueName
from signalbox.sarracenia.rights.names import (
    NAME_CHARACTERS,
    InvalidExchangeName,
    InvalidUserName,
    parse_exchange_name,
    parse_queue_name,
    parse_user_name,
    source_exchange,
    sqs_name,
)

ALICE = parse_user_name("alice")


def test_the_exchange_of_a_source_contains_the_user_name():
    """Sarracenia, option exchange."""
    assert source_exchange(ALICE) == "xs_alice"
    assert source_exchange(ALICE, suffix="images") == "xs_alice_images"


@pytest.mark.parametrize("text", ["", "alice_b", "alice.b", "alice*", "é", "a" * 33, "a b", "${x}"])
def test_an_ambiguous_or_long_user_name_is_refused(text):
    with pytest.raises(InvalidUserName):
        parse_user_name(text)


@pytest.mark.parametrize("text", ["bob-dlq", "Bob-DLQ", "a-exchange-control", "a-exchange-reply"])
def test_a_user_name_that_ends_as_another_users_queues_is_refused(text):
    with pytest.raises(InvalidUserName, match="are reserved"):
        parse_user_name(text)

    assert parse_user_name("dlq") == "dlq"


@pytest.mark.parametrize("text", ["xpublic", "xs_alice", "xs_alice_logs.fifo", "x" * 80])
def test_valid_exchange_names_are_accepted(text):
    assert parse_exchange_name(text) == text


@pytest.mark.parametrize("text", ["", "public", "xs.alice", "xs_é", "x" * 81, "x" * 76 + ".fifo", ".fifo"])
def test_an_invalid_exchange_name_is_refused(text):
    with pytest.raises(InvalidExchangeName):
        parse_exchange_name(text)


@pytest.mark.parametrize("text", ["", "alice", "q_a\nb", "q_" + "é" * 127])
def test_an_invalid_queue_name_is_refused(text):
    with pytest.raises(InvalidQueueName):
        parse_queue_name(text)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("q_alice_swob", "q_alice_swob"),
        ("xs_alice_logs.fifo", "xs_alice_logs.fifo"),
        (
            "q_alice.subscribe.dd_swob.alice_host1.example.com_12345678",
            "q_alice_subscribe_dd_swob_alice_host1_example_com_12345678-3e970165e8fd",
        ),
    ],
)
def test_an_sqs_name_is_readable(name, expected):
    assert sqs_name(name) == expected


names = st.text(st.sampled_from("ab_-.é @*"), max_size=120).map(lambda rest: f"q_alice.{rest}")


@given(names, st.sampled_from(["", "stage-"]), st.sampled_from(["", ".fifo"]))
def test_every_sqs_name_is_valid_and_contains_the_owner(name, prefix, suffix):
    made = sqs_name(name + suffix, prefix=prefix)

    assert len(made) <= 80
    assert set(made.removesuffix(".fifo")) <= NAME_CHARACTERS
    assert made.startswith(f"{prefix}q_alice_")
    assert made.endswith(".fifo") == (name + suffix).endswith(".fifo")


@given(names, names)
def test_different_names_have_different_sqs_names(one, other):
    assert (sqs_name(one) == sqs_name(other)) == (one == other)
