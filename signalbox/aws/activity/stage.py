"""The activity of a stage: one call of CloudWatch, and the queues that its tables name."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from signalbox.activity.measures import Sources, measures
from signalbox.activity.summary import MINUTE, Activity, activities, beginning
from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoQueues
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.shared.errors import translate_read_errors
from signalbox.aws.shared.metric_data import CloudWatchClient, metric, metric_values
from signalbox.aws.splitting.splits import DynamoSplits
from signalbox.exchange.model.names import StageNames
from signalbox.splitting.ports import StoredSplit


@dataclass(frozen=True, slots=True)
class StageActivity:
    """Reads the activity of all capabilities with five calls: three queries, the records of splits and GetMetricData.

    `sources` are the queues and functions that the template of the stage names. `splits` is None without splitting.
    """

    cloudwatch: CloudWatchClient
    splits: DynamoTable | None
    exchanges: DynamoTable
    names: StageNames
    sources: Sources

    def read(self, now: datetime) -> Sequence[Activity]:
        """Return the activity of every capability. Raises `EffectFailed`."""
        with translate_read_errors("tables of the stage"):
            sources = self._sources()
        metrics = {
            one: metric(one.namespace, one.name, one.dimension, statistic=one.statistic, period=MINUTE)
            for one in measures(sources)
        }
        # The end is exclusive, and the current minute counts.
        series = metric_values(
            self.cloudwatch, metrics, since=beginning(now), until=now + MINUTE, about="CloudWatch metrics"
        )
        return activities(sources, series, now)

    def _sources(self) -> Sources:
        stored = () if self.splits is None else DynamoSplits(self.splits).every()
        splits = [one.split for one in stored if isinstance(one, StoredSplit)]
        return self.sources.with_queues(
            split=[queue.original for split in splits for queue in split.queues],
            exchanges=[self.names.queue(one.name) for one in DynamoExchanges(self.exchanges).every()],
            declared=[self.names.queue(one.name) for one in DynamoQueues(self.exchanges).every()],
        )
