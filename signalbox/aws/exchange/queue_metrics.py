"""The CloudWatch metrics of SQS queues: last poll, deletions and age of the oldest message."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from signalbox.aws.shared.metric_data import CloudWatchClient, metric, metric_values
from signalbox.exchange.model.records import QueueActivity
from signalbox.queues import QueueName

# Every receive call increases one of the first two, also if it returns no message.
RECEIVES = ("NumberOfMessagesReceived", "NumberOfEmptyReceives")
REMOVED, OLDEST = "NumberOfMessagesDeleted", "ApproximateAgeOfOldestMessage"
METRICS = {**dict.fromkeys((*RECEIVES, REMOVED), "Sum"), OLDEST: "Maximum"}
# SQS publishes a value each minute; CloudWatch keeps minutes for 15 days, and five-minute values for 63.
FINE, COARSE = timedelta(minutes=1), timedelta(minutes=5)
FINE_WINDOW = timedelta(days=1)


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
        metrics = {
            metric_name: metric("AWS/SQS", metric_name, ("QueueName", name), statistic=statistic, period=period)
            for metric_name, statistic in METRICS.items()
        }
        found = metric_values(self.cloudwatch, metrics, since=since, until=now, about=f"metrics of queue {name!r}")
        received = [at for name_ in RECEIVES for at, count in found[name_].items() if count]
        # A minute's timestamp is its beginning, and the poll may have been at its end.
        received_at = min(now, max(received) + period) if received else None
        removed = round(sum(found[REMOVED].values())) if found[REMOVED] else None
        oldest = timedelta(seconds=found[OLDEST][max(found[OLDEST])]) if found[OLDEST] else None
        return QueueActivity(received_at, removed, oldest)
