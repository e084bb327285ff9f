"""The monthly cost that past messages would have caused, by the price list of the report of costs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from signalbox.history.what_if.past_messages import PIECE_BYTES, Amount

SQS = "SQS request"
CALL_MESSAGES = 10
MILLION = 1_000_000


class Usage(Protocol):
    """The units of a billed item that an action (`what`) of a capability uses: with full and with single calls."""

    @property
    def capability(self) -> str: ...  # noqa: D102 - see the class
    @property
    def what(self) -> str: ...  # noqa: D102
    @property
    def item(self) -> str: ...  # noqa: D102
    @property
    def least(self) -> float: ...  # noqa: D102
    @property
    def most(self) -> float: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class PriceList:
    """The prices of a million units in USD, and the usage of each action."""

    prices: Mapping[str, float]
    usages: Iterable[Usage]


@dataclass(frozen=True, slots=True)
class Cost:
    """A cost in USD a month of 30 days: with full calls, and with one message in each call."""

    least: float = 0.0
    most: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.least + other.least, self.most + other.most)

    def document(self) -> dict[str, object]:
        """Return the cost as a JSON object."""
        return {"usd_a_month_least": round(self.least, 6), "usd_a_month_most": round(self.most, 6)}

    def sentence(self) -> str:
        """Return the cost in words."""
        return f"{_usd(self.least)} to {_usd(self.most)} USD a month"


def monthly_cost(
    amount: Amount, actions: Iterable[tuple[str, str]], price_list: PriceList, *, months: float, is_fifo: bool
) -> Cost:
    """Return the cost of actions, as pairs of capability and what, that are done for each message of `months`."""
    wanted = frozenset(actions)
    found = Cost()
    for usage in price_list.usages:
        if (usage.capability, usage.what) in wanted:
            found += _cost_of(amount, usage, price_list.prices, is_fifo=is_fifo)
    return Cost(found.least / months, found.most / months)


def _cost_of(amount: Amount, usage: Usage, prices: Mapping[str, float], *, is_fifo: bool) -> Cost:
    item, least, most = usage.item, float(amount.messages), float(amount.messages)
    if item == SQS:
        item = f"SQS {'FIFO' if is_fifo else 'standard'} request"
        # A full call has ten messages, but at most the bytes of one billed request.
        least = max(amount.messages / CALL_MESSAGES, amount.size_bytes / PIECE_BYTES) * CALL_MESSAGES
        most = amount.pieces
    price = prices[item] / MILLION
    return Cost(least * usage.least * price, most * usage.most * price)


def _usd(value: float) -> str:
    return f"{value:,.2f}" if value >= 1 or not value else f"{value:.2g}"
