"""The CloudWatch metrics of SQS queues: last poll, deletions and age of the oldest message."""

from collections.abc import Callable
from dataclasses import dataclass, field
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
# Users may send `status` as often as they like, and each question costs the operator four metrics. Less than the
# minute between two values, and between two runs of the scheduled tasks.
KEPT_FOR, MOST_KEPT = timedelta(seconds=45), 10_000


@dataclass(slots=True)
class CloudWatchQueueMetrics:
    """`Metrics` of the exchange, each kept for a time; values that CloudWatch does not have are None."""

    cloudwatch: CloudWatchClient
    now: Callable[[], datetime]
    kept_for: timedelta = KEPT_FOR
    _kept: dict[tuple[QueueName, int], tuple[datetime, QueueActivity]] = field(default_factory=dict)

    def activity(self, name: QueueName, *, since: datetime) -> QueueActivity:
        """Return the activity since a time: the last poll, including empty ones, and the number of deletions.

        The age of the oldest message is the newest measured value. Raises `EffectFailed`.
        """
        now = self.now()
        key = name, round((now - since).total_seconds() / 60)
        known = self._kept.get(key)
        if known is not None and now - known[0] < self.kept_for:
            return known[1]
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        found = self._read(name, since=since, now=now)
        self._kept[key] = now, found
        return found

    def _read(self, name: QueueName, *, since: datetime, now: datetime) -> QueueActivity:
        period = FINE if now - since <= FINE_WINDOW else COARSE
        metrics = {
            metric_name: metric("AWS/SQS", metric_name, ("QueueName", name), statistic=statistic, period=period)
            for metric_name, statistic in METRICS.items()
        }
        # The period in which `since` falls has the time of its beginning.
        begin = since - timedelta(seconds=since.timestamp() % period.total_seconds())
        found = metric_values(self.cloudwatch, metrics, since=begin, until=now, about=f"metrics of queue {name!r}")
        received = [at for name_ in RECEIVES for at, count in found[name_].items() if count]
        # A minute's timestamp is its beginning, and the poll may have been at its end.
        received_at = min(now, max(received) + period) if received else None
        removed = round(sum(found[REMOVED].values())) if found[REMOVED] else None
        oldest = timedelta(seconds=found[OLDEST][max(found[OLDEST])]) if found[OLDEST] else None
        return QueueActivity(received_at, removed, oldest)
