"""The prices of actions are those of the daily report of costs."""

import pytest

from glue_jobs.transforms.prices import FAIR, PRICES, SQS, USAGES
from signalbox.history.prices import ACTION_PRICES

ORDERED, STANDARD = "SQS FIFO request", "SQS standard request"
# The actions that use queues of one kind only; the queues of all others belong to their owners.
KIND_OF_QUEUE = {("exchange", "publication"): STANDARD, ("exchange", "ordered publication"): ORDERED}


def items(capability: str, what: str, item: str) -> tuple[str, str]:
    """Return the items with the lower and the upper price of a use."""
    if item == FAIR:
        return item, "nothing"  # ordered queues have no fair queues
    if item != SQS:
        return item, item
    own = {"live": ORDERED, "rendezvous": STANDARD}.get(capability) or KIND_OF_QUEUE.get((capability, what))
    return own or STANDARD, own or ORDERED


@pytest.mark.parametrize("action", sorted({(usage.capability, usage.what) for usage in USAGES}), ids=" ".join)
def test_an_action_costs_what_its_billed_units_cost(action):
    uses = [(usage, *items(*action, usage.item)) for usage in USAGES if (usage.capability, usage.what) == action]

    least = sum(usage.least * PRICES[lower] for usage, lower, _ in uses)
    most = sum(usage.most * PRICES.get(upper, 0) for usage, _, upper in uses)

    assert ACTION_PRICES[action] == pytest.approx((least, most), rel=1e-4)


def test_every_action_has_a_price():
    assert set(ACTION_PRICES) == {(usage.capability, usage.what) for usage in USAGES}
