"""The costs in docs/rendezvous.md follow from counted calls and the prices; the settings use them."""

from stacks.settings.config import POLL_USD_PER_MILLION
from tests.docs import rendezvous_costs as costs
from tests.handlers.rendezvous.test_budget import (
    ANSWER_CALLS,
    OFFER_CALLS,
    POLL_CALLS,
    SWEEP_CALLS,
    UNMATCHED_POLL_CALLS,
)
from tests.unit.rendezvous.reporting.test_event_recorder import poll_event

QUEUE_CALLS = {"CreateQueue", "SendMessage", "DeleteMessage", "DeleteQueue"}
# Lambda's receive; the client's SendMessage, GetQueueUrl and ReceiveMessage.
OTHERS_CALLS = 1 + 3
CALLS = OFFER_CALLS | POLL_CALLS | ANSWER_CALLS | SWEEP_CALLS


def test_the_page_has_the_costs_of_the_counted_calls():
    text = costs.PAGE.read_text()

    assert costs.page(text) == text


def test_the_writes_and_calls_of_queues_are_the_counted_ones():
    """tests/handlers/rendezvous/test_budget.py counts these calls."""
    queue_calls = sum(number for (_, operation, _), (number, _) in CALLS.items() if operation in QUEUE_CALLS)

    assert sum(number for number, _ in CALLS.values()) == costs.CALLS
    assert sum(number for number, _ in UNMATCHED_POLL_CALLS.values()) == costs.POLL_CALLS
    assert sum(units for _, units in CALLS.values()) == costs.RENDEZVOUS_WRITES
    assert queue_calls + OTHERS_CALLS == costs.RENDEZVOUS_CALLS


def test_a_collected_event_is_billed_with_its_size():
    size = len(poll_event("0123456789abcdef", "0123456789abcdef").to_json())

    assert size / 1000 <= costs.EVENT_KILOBYTES


def test_the_budget_of_polls_is_divided_by_the_price_of_one():
    found = {door: round(costs.UNMATCHED.usd_by(door), 1) for door in POLL_USD_PER_MILLION}

    assert found == POLL_USD_PER_MILLION


def test_by_url_a_rendezvous_and_an_unmatched_poll_cost_no_more_than_this():
    assert costs.ANSWERED.usd() <= 7.5
    assert costs.UNMATCHED.usd() <= 0.7
