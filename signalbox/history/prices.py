"""What the actions of the history cost at AWS's list prices; derived from `glue_jobs/transforms/prices.py`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

MILLION = 1_000_000


class PriceRange(NamedTuple):
    """USD for a million actions: with full calls of ten messages, and with one message in each call."""

    least: float
    most: float


# By capability and action, as in the table `cost_daily`, for messages of up to 64 KiB. Where the queues of an action
# may be standard or FIFO ones, the lower bound has the price of standard queues, and the upper bound that of FIFO ones.
ACTION_PRICES: Mapping[tuple[str, str], PriceRange] = MappingProxyType(
    {
        ("exchange", "publication"): PriceRange(0.388074, 3.88074),
        ("exchange", "ordered publication"): PriceRange(0.493074, 4.93074),
        ("exchange", "logged event"): PriceRange(1.4625, 3.375),
        ("exchange", "copy"): PriceRange(0.15, 1.5),
        ("exchange", "retry"): PriceRange(0.388074, 4.18074),
        ("exchange", "dead letter"): PriceRange(0.04, 0.5),
        ("splitting", "message"): PriceRange(0.316407, 3.66407),
        ("splitting", "copy"): PriceRange(0.12, 1.5),
        ("splitting", "dead letter"): PriceRange(0.04, 0.5),
        ("rendezvous", "answer"): PriceRange(3.80396, 7.61878),
        ("rendezvous", "refusal"): PriceRange(1.13948, 4.23948),
        ("rendezvous", "client by SQS"): PriceRange(2.48, 3.2),
        ("rendezvous", "client by HTTP"): PriceRange(0, 1.15741),
        ("rendezvous", "poll"): PriceRange(0.329167, 2.54908),
        ("live", "delivery"): PriceRange(0.43224, 3.8224),
        ("live", "posted event"): PriceRange(1, 1),
        ("live", "connection minute"): PriceRange(0.25, 0.25),
        ("live", "session start"): PriceRange(16.6734, 30.8844),
        ("live", "session end"): PriceRange(8.21448, 14.6448),
        ("live", "refused login"): PriceRange(6.71448, 13.3948),
        ("live", "subscription"): PriceRange(6.81448, 12.1448),
        ("live", "dropped publication"): PriceRange(3.13224, 5.6974),
        ("history", "event"): PriceRange(0.0235, 0.235),
    }
)
