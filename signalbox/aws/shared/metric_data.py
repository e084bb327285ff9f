"""Values of CloudWatch metrics: up to 500 metrics by one GetMetricData, which is billed by the metric."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from signalbox.aws.shared.errors import translate_read_errors

Key = TypeVar("Key")


class CloudWatchClient(Protocol):
    """The method of boto3's CloudWatch client that the adapters use."""

    @property
    def get_metric_data(self) -> Callable[..., Any]:
        """Return a page of metric values."""


def metric_values(
    cloudwatch: CloudWatchClient,
    metrics: Mapping[Key, Mapping[str, object]],
    *,
    since: datetime,
    until: datetime,
    about: str,
) -> Mapping[Key, Mapping[datetime, float]]:
    """Return the values of each metric by the beginnings of their periods. Raises `EffectFailed`."""
    keys = list(metrics)
    found: dict[Key, dict[datetime, float]] = {key: {} for key in keys}
    queries = [{"Id": f"m{number}", "MetricStat": metrics[key]} for number, key in enumerate(keys)]
    asked: dict[str, object] = {"MetricDataQueries": queries, "StartTime": since, "EndTime": until}
    with translate_read_errors(about):
        while True:
            answer = cloudwatch.get_metric_data(**asked)
            for result in answer["MetricDataResults"]:
                values = zip(result["Timestamps"], result["Values"], strict=True)
                found[keys[int(result["Id"].removeprefix("m"))]].update(values)
            if "NextToken" not in answer:
                return found
            asked["NextToken"] = answer["NextToken"]


def metric(
    namespace: str, name: str, dimension: tuple[str, str], *, statistic: str, period: timedelta
) -> Mapping[str, object]:
    """Return a metric with one dimension in the form of a `MetricStat` of a query."""
    dimensions = [{"Name": dimension[0], "Value": dimension[1]}]
    return {
        "Metric": {"Namespace": namespace, "MetricName": name, "Dimensions": dimensions},
        "Period": round(period.total_seconds()),
        "Stat": statistic,
    }
