"""The CloudWatch metrics that the activity of a stage is computed from, and the queues and functions they are of."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType

from signalbox.activity.events import EVENT_METRICS
from signalbox.queues import QueueName

CAPABILITIES = ("rendezvous", "splitting", "exchange", "live", "history")
EVENTS, QUEUES, FUNCTIONS = "Signalbox", "AWS/SQS", "AWS/Lambda"
VISIBLE, IN_FLIGHT = "ApproximateNumberOfMessagesVisible", "ApproximateNumberOfMessagesNotVisible"
OLDEST, SENT, FAILED = "ApproximateAgeOfOldestMessage", "NumberOfMessagesSent", "Errors"
# Of GetMetricData, which takes 500 metrics a call; a queue has up to four. The first queues by name are measured.
MOST_MEASURES = 500
MEASURES_OF_QUEUE = 4


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric with one dimension, and its statistic for each minute."""

    namespace: str
    name: str
    dimension: tuple[str, str]
    statistic: str = "Sum"


@dataclass(frozen=True, slots=True)
class Sources:
    """The queues and functions of each capability that the stage has, and the queues to which clients publish."""

    queues: Mapping[str, tuple[QueueName, ...]]
    functions: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    published: tuple[QueueName, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Sources":
        """Return the sources in the JSON that the stage's template has: `{"live": {"queues": [], "functions": []}}`."""
        named = json.loads(text)
        return cls(
            queues={name: tuple(map(QueueName, one["queues"])) for name, one in named.items()},
            functions={name: tuple(one["functions"]) for name, one in named.items()},
        )

    def with_queues(
        self, *, split: Iterable[QueueName], exchanges: Iterable[QueueName], declared: Iterable[QueueName]
    ) -> "Sources":
        """Return the sources with the queues of exchanges, the split and the declared queues added, each once.

        At most as many are added as one call can measure.
        """
        left = (MOST_MEASURES - len(list(measures(self)))) // MEASURES_OF_QUEUE
        published = tuple(sorted(exchanges))[:left]
        splits = tuple(sorted(set(split) - set(published)))[: left - len(published)]
        bound = tuple(sorted(set(declared) - set(splits)))[: left - len(published) - len(splits)]
        added = {"splitting": splits, "exchange": (*published, *bound)}
        queues = {name: (*own, *added.get(name, ())) for name, own in self.queues.items()}
        return replace(self, queues=queues, published=published)


def measures(sources: Sources) -> Iterator[Measure]:
    """Yield the metrics of the stage, each once."""
    for capability, events in EVENT_METRICS.items():
        if capability in sources.queues:
            yield from (event_measure(capability, event.name) for event in events)
    for queue in chain.from_iterable(sources.queues.values()):
        yield from (queue_measure(name, queue) for name in (VISIBLE, IN_FLIGHT, OLDEST))
    yield from (queue_measure(SENT, queue) for queue in sources.published)
    yield from (function_measure(function) for function in chain.from_iterable(sources.functions.values()))


def event_measure(capability: str, name: str) -> Measure:
    """Return the number of events of a capability."""
    return Measure(EVENTS, name, ("service", capability))


def queue_measure(name: str, queue: QueueName) -> Measure:
    """Return a metric of a queue: a sum of sent messages, a maximum otherwise."""
    return Measure(QUEUES, name, ("QueueName", queue), "Sum" if name == SENT else "Maximum")


def function_measure(function: str) -> Measure:
    """Return the number of failed runs of a function."""
    return Measure(FUNCTIONS, FAILED, ("FunctionName", function))
