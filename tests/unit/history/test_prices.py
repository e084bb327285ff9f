"""The prices of actions, computed by hand from their billed units."""

import pytest

from signalbox.history.prices import ACTION_PRICES


@pytest.mark.parametrize(
    ("action", "least", "most"),
    [
        (("exchange", "copy"), 0.15, 1.5),  # three requests of a fair queue, or of a FIFO one
        (("exchange", "publication"), 0.388074, 3.88074),  # of a standard exchange
        (("exchange", "ordered publication"), 0.493074, 4.93074),
        (("rendezvous", "client by SQS"), 2.48, 3.2),  # standard queues alone
        (("live", "delivery"), 0.43224, 3.8224),  # FIFO queues alone
        (("history", "event"), 0.0235, 0.235),
    ],
)
def test_an_action_costs_what_its_billed_units_cost(action, least, most):
    assert ACTION_PRICES[action] == pytest.approx((least, most), rel=1e-4)
