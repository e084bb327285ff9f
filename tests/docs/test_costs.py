"""The costs in docs/operations.md follow from the templates and the prices."""

import re

import pytest

from signalbox.history.prices import ACTION_PRICES, PRICES
from tests.docs import costs
from tests.docs.markdown import section
from tests.infrastructure.templates import templates


def test_the_page_has_the_costs_of_the_templates_and_prices():
    text = costs.PAGE.read_text()

    assert costs.page(text) == text


@pytest.mark.parametrize(("capabilities", "resources", "usd"), costs.LIMITS)
def test_a_stage_keeps_within_its_size_and_price_with_one_key(capabilities, resources, usd):
    stage = costs.stage_of(capabilities)
    _, most = costs.price(stage)

    assert costs.size(stage) <= resources
    assert most <= usd
    assert len(stage.every("AWS::KMS::Key")) == 1


def test_a_stage_without_alarms_and_dashboard_has_the_other_resources():
    found = templates(capabilities="exchange", dashboard="false", alarms="false")

    expected = costs.unwatched(costs.stage_of("exchange"))
    assert (found.names, costs.price(found)) == (expected.names, costs.price(expected))


def test_the_readme_has_the_costs_of_the_page():
    said = re.compile(r"[Aa]n idle stage costs (\d+ to \d+)", re.ASCII)

    assert said.findall(costs.PAGE.parents[1].joinpath("README.md").read_text()) == said.findall(costs.PAGE.read_text())


def test_every_price_has_one_source():
    for name in (*PRICES, *(name for name, _ in costs.STANDING_PRICES)):
        assert costs._page(name).startswith("["), name


def test_the_first_year_has_the_sums_of_the_prices_of_actions():
    written = section(costs.PAGE.with_name("first-year.md"), "Costs of use").splitlines()
    uses = {
        "rendezvous": [("rendezvous", "answer"), ("rendezvous", "client by SQS")],
        "live": [
            *(("exchange", name) for name in ("ordered publication", "logged event")),
            *(("live", name) for name in ("delivery", "posted event")),
        ],
        "history": [("history", "event")],
    }

    for name, actions in uses.items():
        sums = [sum(price) for price in zip(*(ACTION_PRICES[one] for one in actions), strict=True)]
        cells = next(line for line in written if line.startswith(f"| {name} |")).split(" | ")
        assert [float(cell) for cell in cells[2:4]] == pytest.approx(sums, abs=0.006), name


@pytest.mark.parametrize(
    ("expression", "runs"),
    [
        ("rate(1 minute)", 43_200),
        ("rate(5 minutes)", 8_640),
        ("rate(1 hour)", 720),
        ("cron(10 3 * * ? *)", 30),
        ("cron(35 */6 * * ? *)", 120),
        ("cron(35 0 * * ? *)", 30),
    ],
)
def test_the_runs_of_a_schedule_are_counted(expression, runs):
    assert costs.runs_of(expression) == runs
