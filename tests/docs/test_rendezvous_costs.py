"""The costs in docs/rendezvous.md follow from counted calls and the prices; the settings use them."""

from signalbox.history.prices import PRICES
from stacks.rendezvous.front import MEMORY_MEGABYTES
from stacks.settings.config import POLL_USD_PER_MILLION
from tests.docs import rendezvous_costs as costs
from tests.handlers.rendezvous.test_budget import (
    ANSWER_CALLS,
    OFFER_CALLS,
    POLL_CALLS,
    SWEEP_CALLS,
    UNMATCHED_POLL_CALLS,
)
from tests.handlers.rendezvous.test_forward import CALLS as FRONT_CALLS
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


def test_the_page_of_the_front_has_the_costs_of_the_counted_calls():
    """Lambda receives an offer and deletes it; a client makes three calls."""
    calls = sum(FRONT_CALLS.values()) + 2 + 3
    queues, run = calls * PRICES[costs.SQS], PRICES[costs.RUNS]
    waiting = MEMORY_MEGABYTES / 1024 * 1000 * PRICES[costs.MEMORY]
    page = (costs.PAGE.parent / "front.md").read_text()

    assert f"the client's three included | 12.5 to 13 | {calls} |" in page
    assert f"{queues:.2f} for eight SQS calls, {run:.2f} for a run of the function, and {waiting:.2f} for" in page
    assert f"cost about {queues + run + waiting:.0f} USD" in page


def test_a_collected_event_is_billed_with_its_size():
    size = len(poll_event("0123456789abcdef", "0123456789abcdef").to_json())

    assert size / 1000 <= costs.EVENT_KILOBYTES


def test_the_budget_of_polls_is_divided_by_the_price_of_one():
    found = {door: round(costs.UNMATCHED.usd_by(door), 1) for door in POLL_USD_PER_MILLION}

    assert found == POLL_USD_PER_MILLION


def test_by_url_a_rendezvous_and_an_unmatched_poll_cost_no_more_than_this():
    assert costs.ANSWERED.usd() <= 7.5
    assert costs.UNMATCHED.usd() <= 0.7
