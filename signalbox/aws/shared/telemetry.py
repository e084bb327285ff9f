"""CloudWatch metrics of history events and measurements, written to the function's log in embedded metric format."""

from collections.abc import Sequence
from datetime import timedelta

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from signalbox.history.event import HistoryEvent

NAMESPACE = "Signalbox"
OLDEST_MESSAGE = "OldestMessageAge"
STAGE_DIMENSION = "stage"


class PowertoolsTelemetry:
    """`Telemetry`: one metric for each kind and outcome of events; the capability is the dimension `service`."""

    def count(self, events: Sequence[HistoryEvent]) -> None:
        """Add events to the metrics."""
        for capability in {event.capability for event in events}:
            metrics = EphemeralMetrics(namespace=NAMESPACE, service=capability)
            for event in events:
                if event.capability == capability:
                    _add(metrics, event)
            metrics.flush_metrics()


def measure_oldest_message(age: timedelta, *, capability: str, stage: str) -> None:
    """Write the age of the oldest waiting message of all queues that a capability's functions read."""
    metrics = EphemeralMetrics(namespace=NAMESPACE, service=capability)
    metrics.add_dimension(name=STAGE_DIMENSION, value=stage)
    metrics.add_metric(name=OLDEST_MESSAGE, unit=MetricUnit.Seconds, value=age.total_seconds())
    metrics.flush_metrics()


def _add(metrics: EphemeralMetrics, event: HistoryEvent) -> None:
    name = metric_name(event)
    metrics.add_metric(name=name, unit=MetricUnit.Count, value=1)
    if event.latency_ms is not None:
        metrics.add_metric(name=f"{name}Latency", unit=MetricUnit.Milliseconds, value=event.latency_ms)


def metric_name(event: HistoryEvent) -> str:
    """Return the name of an event's metric, such as `OfferParked` or `AnswerDelivered`."""
    return "".join(word.capitalize() for word in f"{event.kind}_{event.outcome}".split("_"))
