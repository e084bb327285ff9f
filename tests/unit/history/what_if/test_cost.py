"""The monthly cost of past messages."""

import pytest

from signalbox.history.prices import ACTION_PRICES
from signalbox.history.what_if.cost import Cost, monthly_cost
from signalbox.history.what_if.past_messages import Amount

COPY, EVENT = ("exchange", "copy"), ("history", "event")


def test_calls_are_full_at_least_and_single_at_most():
    cost = monthly_cost(Amount(1_000_000, 1_000, 1_500_000), [COPY, EVENT], months=1)

    copy, event = ACTION_PRICES[COPY], ACTION_PRICES[EVENT]
    assert (cost.least, cost.most) == pytest.approx((copy.least + event.least, 1.5 * (copy.most + event.most)))


def test_a_full_call_has_at_most_64_kib():
    cost = monthly_cost(Amount(1_000_000, 1_000_000 * 65_536, 1_000_000), [COPY], months=1)

    assert cost.least == pytest.approx(10 * ACTION_PRICES[COPY].least)


def test_the_cost_of_a_part_of_a_month_is_that_of_a_month():
    assert monthly_cost(Amount(10, 0, 10), [COPY], months=0.5).most == pytest.approx(20e-6 * ACTION_PRICES[COPY].most)


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (Cost(0, 0), "0.00 to 0.00 USD a month"),
        (Cost(0.000012345, 0.5), "under 0.01 to 0.50 USD a month"),
        (Cost(1, 1234.5), "1.00 to 1,234.50 USD a month"),
    ],
)
def test_a_cost_in_words(cost, text):
    assert cost.sentence() == text


def test_a_cost_as_a_document():
    assert Cost(0.123456789, 2).document() == {"usd_a_month_least": 0.123457, "usd_a_month_most": 2}
