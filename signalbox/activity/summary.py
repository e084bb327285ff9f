"""The activity of each capability, computed from the minutes of its metrics."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from signalbox.activity.events import EVENT_METRICS, EventMetric
from signalbox.activity.measures import (
    CAPABILITIES,
    IN_FLIGHT,
    OLDEST,
    SENT,
    VISIBLE,
    Measure,
    Sources,
    event_measure,
    function_measure,
    queue_measure,
)
from signalbox.activity.questions import UNITS, questions
from signalbox.history.prices import ACTION_PRICES, MILLION, PriceRange
from signalbox.queues import QueueName, is_fifo

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
RATE_MINUTES = 5
Series = Mapping[Measure, Mapping[datetime, float]]
"""The values of metrics by the beginnings of their minutes; a minute without a value is absent."""


@dataclass(frozen=True, slots=True)
class Activity:
    """The work of a capability in each minute of the last hour, its backlog, its errors and its cost.

    `since` is the beginning of the hour. `backlog` counts messages that wait or are in work; without them, `oldest` is
    None. `usd` is the range of the hour.
    """

    capability: str
    since: datetime
    minutes: tuple[int, ...]
    rate: float
    backlog: int
    oldest: timedelta | None
    errors: int
    usd: PriceRange

    def document(self, *, options: str = "") -> dict[str, object]:
        """Return the activity as JSON values; `options` are those of the commands for its stage."""
        return {
            "capability": self.capability,
            "unit": UNITS[self.capability],
            "rate": round(self.rate, 3),
            "minutes": list(self.minutes),
            "backlog": self.backlog,
            "oldest_seconds": None if self.oldest is None else round(self.oldest.total_seconds()),
            "errors": self.errors,
            "usd_least": round(self.usd.least, 6),
            "usd_most": round(self.usd.most, 6),
            "questions": questions(self.capability, self.since, options=options),
        }


def beginning(now: datetime) -> datetime:
    """Return the beginning of the hour that ends with the current minute."""
    return now.replace(second=0, microsecond=0) - HOUR + MINUTE


def activities(sources: Sources, series: Series, now: datetime) -> list[Activity]:
    """Return the activity of the stage's capabilities in their order. The rate is the mean of the last five minutes."""
    return [_activity(capability, sources, series, now) for capability in CAPABILITIES if capability in sources.queues]


def _activity(capability: str, sources: Sources, series: Series, now: datetime) -> Activity:
    first = beginning(now)
    work = _by_minute(series.get(measure, {}) for measure in _work(capability, sources))
    minutes = tuple(round(work[first + number * MINUTE]) for number in range(HOUR // MINUTE))
    queues = sources.queues.get(capability, ())
    backlog = sum(_newest(series, name, queue) for queue in queues for name in (VISIBLE, IN_FLIGHT))
    oldest = max((_newest(series, OLDEST, queue) for queue in queues), default=0)
    elapsed = (RATE_MINUTES - 1) * MINUTE + (now - now.replace(second=0, microsecond=0))
    return Activity(
        capability,
        first,
        minutes,
        rate=sum(minutes[-RATE_MINUTES:]) / elapsed.total_seconds(),
        backlog=round(backlog),
        oldest=timedelta(seconds=oldest) if backlog and oldest else None,
        errors=round(sum(_total(series, measure) for measure in _errors(capability, sources))),
        usd=_usd(capability, sources, series),
    )


def _work(capability: str, sources: Sources) -> Iterator[Measure]:
    if capability == "exchange":
        yield from (queue_measure(SENT, queue) for queue in sources.published)
    elif capability == "history":
        yield from (event_measure(name, event.name) for name, events in EVENT_METRICS.items() for event in events)
    else:
        yield from (event_measure(capability, event.name) for event in EVENT_METRICS[capability] if event.is_work)


def _errors(capability: str, sources: Sources) -> Iterator[Measure]:
    yield from (event_measure(capability, event.name) for event in EVENT_METRICS.get(capability, ()) if event.is_error)
    yield from map(function_measure, sources.functions.get(capability, ()))


def _by_minute(found: Iterable[Mapping[datetime, float]]) -> Counter[datetime]:
    minutes: Counter[datetime] = Counter()
    for values in found:
        for at, value in values.items():
            minutes[at] += value  # type: ignore[assignment]  # a counter adds fractions, too
    return minutes


def _newest(series: Series, name: str, queue: QueueName) -> float:
    values = series.get(queue_measure(name, queue), {})
    return values[max(values)] if values else 0


def _total(series: Series, measure: Measure) -> float:
    return sum(series.get(measure, {}).values())


def _usd(capability: str, sources: Sources, series: Series) -> PriceRange:
    counted = [
        (event, _total(series, event_measure(name, event.name)))
        for name, events in EVENT_METRICS.items()
        for event in events
        if capability in (name, "history")
    ]
    if capability == "history":
        return _sum(_times(ACTION_PRICES["history", "event"], number) for _, number in counted)
    costs = [_times(_price(capability, event), number) for event, number in counted]
    if capability == "exchange":
        sent = ((queue, _total(series, queue_measure(SENT, queue))) for queue in sources.published)
        costs += [_times(_price_of_publication(queue), number) for queue, number in sent]
    return _sum(costs)


def _price(capability: str, event: EventMetric) -> PriceRange:
    least = sum(ACTION_PRICES[capability, action].least for action in event.least)
    return PriceRange(least, sum(ACTION_PRICES[capability, action].most for action in event.most))


def _price_of_publication(queue: QueueName) -> PriceRange:
    return ACTION_PRICES["exchange", "ordered publication" if is_fifo(queue) else "publication"]


def _times(price: PriceRange, number: float) -> PriceRange:
    return PriceRange(price.least * number / MILLION, price.most * number / MILLION)


def _sum(costs: Iterable[PriceRange]) -> PriceRange:
    listed = list(costs)
    return PriceRange(sum(one.least for one in listed), sum(one.most for one in listed))
