"""The monthly cost that past messages would have caused, by the price list of the report of costs."""

from collections.abc import Iterable
from dataclasses import dataclass

from signalbox.history.prices import ACTION_PRICES, MILLION
from signalbox.history.what_if.past_messages import PIECE_BYTES, Amount

CALL_MESSAGES = 10
CENT = 0.01


@dataclass(frozen=True, slots=True)
class Cost:
    """A cost in USD a month of 30 days: with full calls, and with one message in each call."""

    least: float
    most: float

    def document(self) -> dict[str, object]:
        """Return the cost as a JSON object."""
        return {"usd_a_month_least": round(self.least, 6), "usd_a_month_most": round(self.most, 6)}

    def sentence(self) -> str:
        """Return the cost in words."""
        return f"{_usd(self.least)} to {_usd(self.most)} USD a month"


def monthly_cost(amount: Amount, actions: Iterable[tuple[str, str]], *, months: float) -> Cost:
    """Return the cost of actions, as pairs of capability and what, that are done for each message of `months`.

    At least, calls are full: of ten messages, or of the 64 KiB of a billed request. At most, each piece of 64 KiB is a
    message of its own.
    """
    prices = [ACTION_PRICES[action] for action in actions]
    full = max(amount.messages, amount.size_bytes / PIECE_BYTES * CALL_MESSAGES)
    least, most = sum(price.least for price in prices) * full, sum(price.most for price in prices) * amount.pieces
    return Cost(least / MILLION / months, most / MILLION / months)


def _usd(value: float) -> str:
    return f"{value:,.2f}" if value >= CENT or not value else f"under {CENT}"
