"""CloudWatch metrics of history events, written to the function's log in embedded metric format."""

from collections.abc import Sequence

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from signalbox.history.event import HistoryEvent

NAMESPACE = "Signalbox"


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


def _add(metrics: EphemeralMetrics, event: HistoryEvent) -> None:
    name = metric_name(event)
    metrics.add_metric(name=name, unit=MetricUnit.Count, value=1)
    if event.latency_ms is not None:
        metrics.add_metric(name=f"{name}Latency", unit=MetricUnit.Milliseconds, value=event.latency_ms)


def metric_name(event: HistoryEvent) -> str:
    """Return the name of an event's metric, such as `OfferParked` or `AnswerDelivered`."""
    return "".join(word.capitalize() for word in f"{event.kind}_{event.outcome}".split("_"))
