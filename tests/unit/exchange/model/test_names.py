"""The SQS names of the exchange's queues, and the users that control queues identify."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.model.names import (
    StageNames,
    dead_letter_name,
    dead_letter_problem,
    exchange_name_problem,
    existing_queue,
    is_dead_letter_name,
    is_existing,
)
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName, InvalidUserName, parse_user_name

NAMES = StageNames("box")
ALICE = parse_user_name("alice")


def test_an_exchange_bears_its_own_name_in_sqs():
    assert NAMES.queue("xs_alice_logs.fifo") == "xs_alice_logs.fifo"
    assert StageNames("box", "dev-").queue("xpublic") == "dev-xpublic"


def test_an_existing_queue_has_the_name_that_its_owner_gave_it():
    assert StageNames("box", "dev-").queue(existing_queue(QueueName("Mail_2.fifo"))) == "Mail_2.fifo"
    assert [is_existing(name) for name in ("sqs:mail", "q_mail")] == [True, False]


@pytest.mark.parametrize("prefix", ["", "dev-"])
def test_a_router_knows_an_exchange_by_its_queue(prefix):
    names = StageNames("box", prefix)

    assert names.exchange_of(names.queue("xs_alice.fifo")) == "xs_alice.fifo"


@pytest.mark.parametrize("queue", ["xpublic", "dev-q_alice", "dev-xpublic-dlq"])
def test_other_queues_are_no_exchanges(queue):
    assert StageNames("box", "dev-").exchange_of(QueueName(queue)) is None


def test_a_users_control_queue_identifies_the_user():
    assert NAMES.control_queue(ALICE) == "box-exchange-control-alice"
    assert NAMES.user_of("box-exchange-control-alice") == "alice"


def test_the_administrators_have_a_control_queue_of_their_own():
    assert NAMES.control_queue(None) == "box-exchange-control"
    assert NAMES.user_of("box-exchange-control") is None


@pytest.mark.parametrize("queue", ["box-exchange-controlled", "other-exchange-control", "box-exchange-control-"])
def test_an_unknown_control_queue_gives_no_administrator_rights(queue):
    with pytest.raises(InvalidUserName):
        NAMES.user_of(queue)


def test_every_user_has_a_reply_queue():
    assert NAMES.reply_queue(ALICE) == "box-exchange-reply-alice"
    assert NAMES.reply_queue(None) == "box-exchange-reply"


def test_a_user_whose_control_queue_has_too_long_a_name_is_refused():
    names = StageNames("a-stage-with-a-name-of-no-less-than-40-x")
    longest = parse_user_name("u" * 22)

    names.check_user(longest)

    assert len(names.control_queue(longest)) == 80
    with pytest.raises(InvalidUserName, match=r"at most 22 are allowed.*choose a shorter name"):
        names.check_user(parse_user_name("u" * 23))


def test_the_dead_letter_queue_says_whose_it_is():
    assert dead_letter_name(QueueName("q_alice")) == "q_alice-dlq"
    assert dead_letter_name(QueueName("xs_alice.fifo")) == "xs_alice-dlq.fifo"


@given(st.text("ab", min_size=1, max_size=80), st.sampled_from(["", ".fifo"]))
def test_every_dead_letter_queue_has_a_name_that_sqs_takes(stem, suffix):
    name = dead_letter_name(QueueName(stem[: 80 - len(suffix)] + suffix))

    assert len(name) <= 80
    assert name.endswith(f"-dlq{suffix}")
    assert is_dead_letter_name(name)


def test_names_that_differ_at_their_ends_have_different_dead_letter_queues():
    one, other = QueueName("q_" + "a" * 77 + "1"), QueueName("q_" + "a" * 77 + "2")

    assert dead_letter_name(one) != dead_letter_name(other)


@pytest.mark.parametrize("name", ["xs_alice-dlq", "q_alice-dlq.fifo", "xs_alice-dlq2"])
def test_only_dead_letter_queues_are_named_so(name):
    assert dead_letter_problem(name) == "contains '-dlq', as the names of dead-letter queues do"
    assert exchange_name_problem(ExchangeName(name), prefix="") == dead_letter_problem(name)


def test_an_exchange_has_to_fit_with_the_stages_prefix():
    name = ExchangeName("x" * 80)

    assert exchange_name_problem(name, prefix="") is None
    assert exchange_name_problem(name, prefix="dev-") == "has 80 characters; at most 76 are allowed, after 'dev-'"
