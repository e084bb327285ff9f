"""The conditions of a stage's weather: its seed and the limits of the account."""

from dataclasses import dataclass

# The user of the local stage's own commands: its key and rights count at once, since it exists on no AWS account.
ADMINISTRATOR = "signalbox-administrator"
ACCOUNT_CONCURRENCY = 1000


@dataclass(frozen=True, slots=True)
class Weather:
    """The weather of one stage; the same seed gives the n-th call of a kind the same fate."""

    seed: int
    account_concurrency: int = ACCOUNT_CONCURRENCY
    """Functions that run at the same time in the account."""
