"""The CloudWatch metrics of queues, present and missing."""

from datetime import UTC, datetime, timedelta

import boto3
import pytest

from signalbox.aws.exchange.queue_metrics import KEPT_FOR, MOST_KEPT, CloudWatchQueueMetrics
from signalbox.errors import EffectFailed
from signalbox.exchange.model.records import QueueActivity
from signalbox.queues import QueueName
from tests.adapters.shared.stubs import StubbedClient, error

NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NAME = QueueName("q_alice")


class CloudWatch:
    """A CloudWatch client that returns these values by metric and minutes ago, one a page."""

    def __init__(self, values: dict[str, dict[int, float]]) -> None:
        self.values, self.asked = values, []

    def get_metric_data(self, **asked: object) -> dict[str, object]:
        self.asked.append(asked)
        page = int(asked.get("NextToken", 0))
        query = asked["MetricDataQueries"][page]
        found = self.values.get(query["MetricStat"]["Metric"]["MetricName"], {})
        minute = NOW.replace(second=0)
        result = {
            "Id": query["Id"],
            "Timestamps": [minute - ago * MINUTE for ago in found],
            "Values": list(found.values()),
        }
        return {"MetricDataResults": [result], **({"NextToken": str(page + 1)} if page < 3 else {})}


def activity(values: dict[str, dict[int, float]], *, since: timedelta = timedelta(hours=1)) -> QueueActivity:
    return CloudWatchQueueMetrics(CloudWatch(values), lambda: NOW).activity(NAME, since=NOW - since)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param({}, QueueActivity(), id="no-metrics"),
        pytest.param({"NumberOfEmptyReceives": {7: 3.0, 9: 1.0}}, QueueActivity(6), id="empty-receives"),
        pytest.param(
            {"NumberOfMessagesReceived": {5: 2.0}, "NumberOfEmptyReceives": {9: 1.0}}, QueueActivity(4), id="messages"
        ),
        pytest.param({"NumberOfEmptyReceives": {1: 0.0, 9: 1.0}}, QueueActivity(8), id="zeros-are-no-receives"),
        pytest.param({"NumberOfMessagesDeleted": {1: 2.0, 3: 3.0}}, QueueActivity(None, 5), id="deleted"),
        pytest.param({"NumberOfMessagesDeleted": {1: 0.0}}, QueueActivity(None, 0), id="nothing-deleted"),
        pytest.param(
            {"ApproximateAgeOfOldestMessage": {1: 30.0, 3: 90.0}},
            QueueActivity(oldest=timedelta(seconds=30)),
            id="oldest",
        ),
    ],
)
def test_activity_has_the_last_receive_the_deletions_and_the_age(values: dict, expected: QueueActivity) -> None:
    """`received_at` here is the number of minutes since the end of the minute of the last receive."""
    read = activity(values)

    received_at = expected.received_at
    at = None if received_at is None else NOW.replace(second=0) - received_at * MINUTE
    assert read == QueueActivity(at, expected.removed, expected.oldest)


def test_a_receive_in_this_minute_was_not_later_than_now() -> None:
    assert activity({"NumberOfMessagesReceived": {0: 1.0}}).received_at == NOW


@pytest.mark.parametrize(
    ("since", "seconds"), [(timedelta(hours=24), 60), (timedelta(days=2), 300)], ids=["a-day", "longer"]
)
def test_a_long_time_is_looked_at_less_closely(since: timedelta, seconds: int) -> None:
    """The period in which the time begins counts."""
    cloudwatch = CloudWatch({})

    CloudWatchQueueMetrics(cloudwatch, lambda: NOW).activity(NAME, since=NOW - since)

    first = cloudwatch.asked[0]
    assert (first["StartTime"], first["EndTime"]) == (NOW.replace(second=0) - since, NOW)
    assert {query["MetricStat"]["Period"] for query in first["MetricDataQueries"]} == {seconds}
    dimensions = [query["MetricStat"]["Metric"]["Dimensions"] for query in first["MetricDataQueries"]]
    assert dimensions == [[{"Name": "QueueName", "Value": NAME}]] * 4


def test_users_who_ask_again_and_again_cost_one_question_a_queue() -> None:
    cloudwatch, moment = CloudWatch({}), [NOW]
    metrics = CloudWatchQueueMetrics(cloudwatch, lambda: moment[0])

    def asked(name: str, window: timedelta = timedelta(hours=1)) -> int:
        before = len(cloudwatch.asked)
        metrics.activity(QueueName(name), since=moment[0] - window)
        return (len(cloudwatch.asked) - before) // 4

    assert [asked("q_alice"), asked("q_alice"), asked("q_bob"), asked("q_alice", MINUTE)] == [1, 0, 1, 1]
    moment[0] += KEPT_FOR
    assert [asked("q_alice"), asked("q_alice")] == [1, 0]
    assert sum(asked(f"q_{number}") for number in range(MOST_KEPT)) == MOST_KEPT
    assert asked("q_alice") == 1


def test_cloudwatch_takes_the_question(aws) -> None:
    metrics = CloudWatchQueueMetrics(boto3.client("cloudwatch"), lambda: NOW)

    assert metrics.activity(NAME, since=NOW - MINUTE) == QueueActivity()


def test_missing_metrics_are_a_temporary_failure(aws) -> None:
    cloudwatch = StubbedClient(None, "get_metric_data", error("AccessDenied"))

    with pytest.raises(EffectFailed, match="metrics of queue 'q_alice'"):
        CloudWatchQueueMetrics(cloudwatch, lambda: NOW).activity(NAME, since=NOW - MINUTE)
