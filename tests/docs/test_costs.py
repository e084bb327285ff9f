"""The costs in docs/operations.md follow from the templates and the prices."""

import pytest

from glue_jobs.transforms.prices import PRICES
from tests.docs import costs


def test_the_page_has_the_costs_of_the_templates_and_prices():
    text = costs.PAGE.read_text()

    assert costs.page(text) == text


def test_every_price_has_one_source():
    for name in (*PRICES, *(name for name, _ in costs.STANDING_PRICES)):
        assert costs._page(name).startswith("["), name


@pytest.mark.parametrize(
    ("expression", "runs"),
    [
        ("rate(1 minute)", 43_200),
        ("rate(5 minutes)", 8_640),
        ("cron(10 3 * * ? *)", 30),
        ("cron(35 */6 * * ? *)", 120),
        ("cron(35 0 * * ? *)", 30),
    ],
)
def test_the_runs_of_a_schedule_are_counted(expression, runs):
    assert costs.runs_of(expression) == runs
