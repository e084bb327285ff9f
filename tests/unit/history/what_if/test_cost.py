"""The monthly cost of past messages."""

from typing import NamedTuple

import pytest

from glue_jobs.transforms.prices import PRICES, USAGES
from signalbox.history.what_if.cost import Cost, PriceList, monthly_cost
from signalbox.history.what_if.past_messages import Amount


class Use(NamedTuple):
    capability: str
    what: str
    item: str
    least: float
    most: float


OWN = PriceList(
    {"SQS standard request": 1.0, "SQS FIFO request": 10.0, "Lambda request": 100.0},
    (Use("a", "copy", "SQS request", 0.3, 3), Use("a", "copy", "Lambda request", 1, 2), Use("a", "b", "x", 1, 1)),
)


def test_calls_are_full_at_least_and_single_at_most():
    amount = Amount(1_000_000, 1_000, 1_500_000)

    assert monthly_cost(amount, [("a", "copy")], OWN, months=1, is_fifo=False) == Cost(0.3 + 100, 4.5 + 200)
    assert monthly_cost(amount, [("a", "copy")], OWN, months=1, is_fifo=True) == Cost(3 + 100, 45 + 200)


def test_a_call_has_at_most_64_kib():
    amount = Amount(1_000_000, 1_000_000 * 65_536, 1_000_000)

    cost = monthly_cost(amount, [("a", "copy")], OWN, months=0.5, is_fifo=False)

    assert cost.least == pytest.approx(2 * (3 + 100))


def test_the_price_of_a_copy_is_that_of_the_report_of_costs():
    copies = monthly_cost(
        Amount(1_000_000, 0, 1_000_000), [("exchange", "copy")], PriceList(PRICES, USAGES), months=1, is_fifo=False
    )

    assert (copies.least, copies.most) == pytest.approx((0.12, 1.2))


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (Cost(), "0.00 to 0.00 USD a month"),
        (Cost(0.000012345, 0.5), "1.2e-05 to 0.5 USD a month"),
        (Cost(1, 1234.5), "1.00 to 1,234.50 USD a month"),
    ],
)
def test_a_cost_in_words(cost, text):
    assert cost.sentence() == text


def test_a_cost_as_a_document():
    assert Cost(0.123456789, 2).document() == {"usd_a_month_least": 0.123457, "usd_a_month_most": 2}
