"""The minutes of many CloudWatch metrics, read in one call."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from signalbox.activity.measures import Measure
from signalbox.aws.shared.errors import look

MINUTE_SECONDS = 60


class CloudWatchClient(Protocol):
    """The method of boto3's CloudWatch client that the adapter uses."""

    @property
    def get_metric_data(self) -> Callable[..., Any]:
        """Return a page of metric values."""


@dataclass(frozen=True, slots=True)
class CloudWatchMetricData:
    """Reads up to 500 metrics by GetMetricData, which is billed by the metric: 0.01 USD for a thousand."""

    cloudwatch: CloudWatchClient

    def minutes(
        self, measures: Iterable[Measure], *, since: datetime, until: datetime
    ) -> Mapping[Measure, Mapping[datetime, float]]:
        """Return the values of each metric by the beginnings of their minutes. Raises `EffectFailed`."""
        listed = list(measures)
        found: dict[Measure, dict[datetime, float]] = {measure: {} for measure in listed}
        asked: dict[str, object] = {
            "MetricDataQueries": [_query(number, measure) for number, measure in enumerate(listed)],
            "StartTime": since,
            "EndTime": until,
        }
        with look("CloudWatch metrics"):
            while True:
                answer = self.cloudwatch.get_metric_data(**asked)
                for result in answer["MetricDataResults"]:
                    values = zip(result["Timestamps"], result["Values"], strict=True)
                    found[listed[int(result["Id"].removeprefix("m"))]].update(values)
                if "NextToken" not in answer:
                    return found
                asked["NextToken"] = answer["NextToken"]


def _query(number: int, measure: Measure) -> dict[str, object]:
    name, value = measure.dimension
    metric = {
        "Namespace": measure.namespace,
        "MetricName": measure.name,
        "Dimensions": [{"Name": name, "Value": value}],
    }
    return {
        "Id": f"m{number}",
        "MetricStat": {"Metric": metric, "Period": MINUTE_SECONDS, "Stat": measure.statistic},
    }
