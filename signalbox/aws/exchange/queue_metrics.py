"""The CloudWatch metrics of SQS queues: last poll, deletions and age of the oldest message."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from signalbox.aws.shared.errors import look
from signalbox.exchange.model.records import QueueActivity
from signalbox.queues import QueueName

# Every receive call increases one of the first two, also if it returns no message.
RECEIVES = ("NumberOfMessagesReceived", "NumberOfEmptyReceives")
REMOVED, OLDEST = "NumberOfMessagesDeleted", "ApproximateAgeOfOldestMessage"
METRICS = {**dict.fromkeys((*RECEIVES, REMOVED), "Sum"), OLDEST: "Maximum"}
# SQS publishes a value each minute; CloudWatch keeps minutes for 15 days, and five-minute values for 63.
FINE, COARSE = timedelta(minutes=1), timedelta(minutes=5)
FINE_WINDOW = timedelta(days=1)


class CloudWatchClient(Protocol):
    """The methods of boto3's CloudWatch client that the adapter uses."""

    @property
    def get_metric_data(self) -> Callable[..., Any]:
        """Return a page of metric values."""


@dataclass(frozen=True, slots=True)
class CloudWatchQueueMetrics:
    """`Metrics` of the exchange; values that CloudWatch does not have are None."""

    cloudwatch: CloudWatchClient
    now: Callable[[], datetime]

    def activity(self, name: QueueName, *, since: datetime) -> QueueActivity:
        """Return the activity since a time: the last poll, including empty ones, and the number of deletions.

        The age of the oldest message is the newest measured value. Raises `EffectFailed`.
        """
        now = self.now()
        period = FINE if now - since <= FINE_WINDOW else COARSE
        found = self._values(name, since=since, until=now, period=period)
        received = [at for metric in RECEIVES for at, count in found[metric].items() if count]
        # A minute's timestamp is its beginning, and the poll may have been at its end.
        received_at = min(now, max(received) + period) if received else None
        removed = round(sum(found[REMOVED].values())) if found[REMOVED] else None
        oldest = timedelta(seconds=found[OLDEST][max(found[OLDEST])]) if found[OLDEST] else None
        return QueueActivity(received_at, removed, oldest)

    def _values(
        self, name: QueueName, *, since: datetime, until: datetime, period: timedelta
    ) -> Mapping[str, Mapping[datetime, float]]:
        metrics = list(METRICS)
        queries = [_query(f"m{number}", metric, name, period) for number, metric in enumerate(metrics)]
        found: dict[str, dict[datetime, float]] = {metric: {} for metric in metrics}
        with look(f"metrics of queue {name!r}"):
            for result in self._results(MetricDataQueries=queries, StartTime=since, EndTime=until):
                metric = metrics[int(result["Id"].removeprefix("m"))]
                found[metric].update(zip(result["Timestamps"], result["Values"], strict=True))
        return found

    def _results(self, **asked: object) -> Iterator[Mapping[str, Any]]:
        page: Mapping[str, str] = {}
        while True:
            answer = self.cloudwatch.get_metric_data(**asked, **page)
            yield from answer["MetricDataResults"]
            if "NextToken" not in answer:
                return
            page = {"NextToken": answer["NextToken"]}


def _query(query_id: str, metric: str, name: QueueName, period: timedelta) -> dict[str, object]:
    dimensions = [{"Name": "QueueName", "Value": name}]
    measured = {"Namespace": "AWS/SQS", "MetricName": metric, "Dimensions": dimensions}
    seconds = round(period.total_seconds())
    return {"Id": query_id, "MetricStat": {"Metric": measured, "Period": seconds, "Stat": METRICS[metric]}}
