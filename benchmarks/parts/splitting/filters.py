"""Filter evaluations per second, next to a hand-written loop over Python's `re`."""

import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.parts.splitting.calls import BATCH, NOW, budget, message, pattern_of, route_of
from signalbox.messages import Message
from signalbox.splitting.forwarding.decider import claims_of
from signalbox.splitting.forwarding.matching import decide

SESSIONS = (1, 10, 100)
MESSAGES = 200
ROUNDS = 7
SECONDS = 0.2  # the minimum for one side in one round


@dataclass(frozen=True, slots=True)
class Filters:
    """Evaluations per second with `sessions` sessions, as the median of all rounds; no session claims the messages."""

    sessions: int
    ours: float
    plain: float

    @property
    def ratio(self) -> float:
        """Return Signalbox's rate as a multiple of the plain loop's."""
        return self.ours / self.plain


def measure(say: Callable[[str], None]) -> list[Filters]:
    """Measure both sides in alternating order, so that the machine's noise affects both."""
    found = []
    for sessions in SESSIONS:
        say(f"filters of {sessions} sessions")
        found.append(_measured(sessions))
    return found


def _measured(sessions: int) -> Filters:
    messages = [message(number, f"other-{number}") for number in range(MESSAGES)]
    route = route_of(sessions)
    plain = plain_loop(sessions)

    def ours() -> None:
        for number, one in enumerate(messages):
            if number % BATCH == 0:
                time_left = budget()
            assert decide(one, claims_of(route, NOW), budget=time_left).owner is None

    def theirs() -> None:
        for one in messages:
            assert plain(one) is None

    _check(sessions, plain)
    rates: dict[str, list[float]] = {"ours": [], "plain": []}
    for number in range(ROUNDS):
        sides = [("ours", ours), ("plain", theirs)]
        for name, side in sides if number % 2 else sides[::-1]:
            rates[name].append(_rate(side) * MESSAGES * sessions)
    return Filters(sessions, statistics.median(rates["ours"]), statistics.median(rates["plain"]))


def _check(sessions: int, plain: Callable[[Message], str | None]) -> None:
    """Check that both sides give a message of the last session to that session."""
    claimed = message(0, f"color-{sessions - 1}")
    owner = decide(claimed, claims_of(route_of(sessions), NOW), budget=budget()).owner
    assert owner is not None
    assert owner == plain(claimed)


def _rate(side: Callable[[], None]) -> float:
    runs = 0
    started = time.perf_counter()
    while (seconds := time.perf_counter() - started) < SECONDS or not runs:
        side()
        runs += 1
    return runs / seconds


def plain_loop(sessions: int) -> Callable[[Message], str | None]:
    """Return the plain loop: compiled once, names in any case, the first session that matches."""
    filters: Sequence[tuple[str, dict[str, re.Pattern[str]]]] = [
        (f"session-{number}", {"color": re.compile(pattern_of(number), re.IGNORECASE)}) for number in range(sessions)
    ]

    def owner(received: Message) -> str | None:
        attributes = received.document["MessageAttributes"]
        assert isinstance(attributes, dict)
        values = {name.lower(): value.get("StringValue", "") for name, value in attributes.items()}
        for session, patterns in filters:
            if all(name in values and pattern.search(values[name]) for name, pattern in patterns.items()):
                return session
        return None

    return owner
