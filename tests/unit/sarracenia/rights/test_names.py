"""Names of exchanges, queues and users, and what SQS has for them."""

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


def test_names_follow_the_user():
    """Sarracenia, exchange."""
    assert source_exchange(ALICE) == "xs_alice"
    assert source_exchange(ALICE, suffix="images") == "xs_alice_images"


@pytest.mark.parametrize("text", ["", "alice_b", "alice.b", "alice*", "é", "a" * 33, "a b", "${x}"])
def test_a_user_whose_names_could_be_anothers_is_refused(text):
    with pytest.raises(InvalidUserName):
        parse_user_name(text)


@pytest.mark.parametrize("text", ["xpublic", "xs_alice", "xs_alice_logs.fifo", "x" * 80])
def test_names_of_exchanges(text):
    assert parse_exchange_name(text) == text


@pytest.mark.parametrize("text", ["", "public", "xs.alice", "xs_é", "x" * 81, "x" * 76 + ".fifo", ".fifo"])
def test_a_name_that_is_no_exchanges_is_refused(text):
    with pytest.raises(InvalidExchangeName):
        parse_exchange_name(text)


@pytest.mark.parametrize("text", ["", "alice", "q_a\nb", "q_" + "é" * 127])
def test_a_name_that_is_no_queues_is_refused(text):
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
def test_a_name_in_sqs_can_be_read(name, expected):
    assert sqs_name(name) == expected


names = st.text(st.sampled_from("ab_-.é @*"), max_size=120).map(lambda rest: f"q_alice.{rest}")


@given(names, st.sampled_from(["", "stage-"]), st.sampled_from(["", ".fifo"]))
def test_every_name_is_one_that_sqs_takes_and_still_tells_its_owner(name, prefix, suffix):
    made = sqs_name(name + suffix, prefix=prefix)

    assert len(made) <= 80
    assert set(made.removesuffix(".fifo")) <= NAME_CHARACTERS
    assert made.startswith(f"{prefix}q_alice_")
    assert made.endswith(".fifo") == (name + suffix).endswith(".fifo")


@given(names, names)
def test_two_names_never_meet_in_one_queue(one, other):
    assert (sqs_name(one) == sqs_name(other)) == (one == other)
