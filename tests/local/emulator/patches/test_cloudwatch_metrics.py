"""CloudWatch has the metrics of functions' logs and of queues."""

import asyncio
import json
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.local.emulator.patches.cloudwatch_metrics import (
    by_minute,
    counting,
    counting_receives,
    logged_metrics,
    logging,
    reading,
)
from tests.local.emulator.functions import make_function

DIRECTIVE = {
    "Namespace": "Signalbox",
    "Dimensions": [["service"]],
    "Metrics": [{"Name": "OfferDenied", "Unit": "Count"}],
}
LINE = json.dumps({"_aws": {"CloudWatchMetrics": [DIRECTIVE]}, "service": "rendezvous", "OfferDenied": [1.0, 1.0]})
LOG_METRICS = f"def handler(event, context):\n    print({LINE!r})\n"


def key_of(dimensions):
    return str(sorted(dimensions.items()))


def test_values_of_a_minute_are_one_set_of_statistics(monkeypatch):
    points, now = {}, 120.0
    monkeypatch.setattr(time, "time", lambda: now)
    record = by_minute(lambda key: points.setdefault(key, []), key_of, threading.Lock())

    record("Signalbox", "Age", 4, "Seconds", {"service": "live"})
    now = 179.0
    record("Signalbox", "Age", 2, "Seconds", {"service": "live"})
    now = 180.0
    record("Signalbox", "Age", 7, "Seconds", {"service": "live"})

    ((_, found),) = points.items()
    assert [(one["Timestamp"], one["_stat"]) for one in found] == [
        (120.0, {"SampleCount": 2, "Sum": 6, "Minimum": 2, "Maximum": 4}),
        (180.0, {"SampleCount": 1, "Sum": 7, "Minimum": 7, "Maximum": 7}),
    ]


def test_a_measurement_replaces_that_of_its_minute(monkeypatch):
    points = []
    monkeypatch.setattr(time, "time", lambda: 120.0)
    measure = by_minute(lambda _: points, key_of, threading.Lock(), replaces=True)

    measure("AWS/SQS", "Visible", 9, "Count", {})
    measure("AWS/SQS", "Visible", 0, "Count", {})

    assert [one["_stat"]["Maximum"] for one in points] == [0]


@pytest.mark.parametrize(
    "line", ["START", '{"CloudWatchMetrics"', '{"a": "\\"CloudWatchMetrics\\""}', '["CloudWatchMetrics"]']
)
def test_other_lines_have_no_metrics(line):
    assert list(logged_metrics(line)) == []


def test_a_logged_metric_is_recorded_once_for_each_value():
    logged, recorded = [], []

    log = logging(lambda *given, **_: logged.append(given), lambda *metric: recorded.append(metric))
    log("function", "1", f"START\n{LINE}\n")
    log("function", "2", None)

    assert recorded == [("Signalbox", "OfferDenied", 1.0, "Count", {"service": "rendezvous"})] * 2
    assert [given[1] for given in logged] == ["1", "2"]


def test_a_sent_message_is_counted_at_its_queue():
    recorded = []
    send = counting(lambda data, _url: {"MessageId": data["MessageBody"]}, lambda *metric: recorded.append(metric))

    assert send({"MessageBody": "m", "QueueUrl": "http://x/000000000000/orders"}, "") == {"MessageId": "m"}
    assert recorded == [("AWS/SQS", "NumberOfMessagesSent", 1, "Count", {"QueueName": "orders"})]


def test_received_messages_and_empty_receives_are_counted_at_their_queue():
    recorded, answers = [], [{"Messages": [{}, {}]}, {}]

    async def receive(_data, _url):
        return answers.pop(0)

    counted = counting_receives(receive, lambda _namespace, *metric: recorded.append(metric))
    for _ in range(2):
        asyncio.run(counted({"QueueUrl": "http://x/000000000000/orders"}, ""))

    assert recorded == [
        ("NumberOfMessagesReceived", 2, "Count", {"QueueName": "orders"}),
        ("NumberOfEmptyReceives", 1, "Count", {"QueueName": "orders"}),
    ]


def test_a_queue_is_measured_when_its_metrics_are_requested():
    now, recorded = time.time(), {}
    messages = [
        {"sent_at": now - 50, "visible_at": now - 50, "receive_count": 0},
        {"sent_at": now - 90, "visible_at": now + 30, "receive_count": 1},
        {"sent_at": now - 99, "visible_at": now + 30, "receive_count": 0},
    ]

    def query(name, queue, namespace="AWS/SQS"):
        dimensions = [{"Name": "QueueName", "Value": queue}]
        return {"MetricStat": {"Metric": {"Namespace": namespace, "MetricName": name, "Dimensions": dimensions}}}

    read = reading(
        lambda _params, request, *_: len(request["MetricDataQueries"]),
        lambda _namespace, name, value, _unit, dimensions: recorded.update({(dimensions["QueueName"], name): value}),
        {"orders": messages, "empty": []}.get,
    )
    queries = [query("ApproximateAgeOfOldestMessage", name) for name in ("orders", "empty", "gone")]
    queries += [query("NumberOfMessagesSent", "sent"), query("OfferDenied", "x", "Signalbox")]

    assert read({}, {"MetricDataQueries": queries}, "json") == 5
    assert recorded["orders", "ApproximateNumberOfMessagesVisible"] == 1
    assert recorded["orders", "ApproximateNumberOfMessagesNotVisible"] == 1
    assert recorded["orders", "ApproximateNumberOfMessagesDelayed"] == 1
    assert recorded["orders", "ApproximateAgeOfOldestMessage"] == pytest.approx(90, abs=30)
    assert recorded["empty", "ApproximateAgeOfOldestMessage"] == 0
    assert {queue for queue, _ in recorded} == {"orders", "empty"}


@pytest.mark.emulator
@pytest.mark.release
def test_cloudwatch_returns_the_metrics_of_a_run_and_of_a_queue(running):
    session = running.session()
    sqs, cloudwatch = session.client("sqs"), session.client("cloudwatch")
    url = sqs.create_queue(QueueName="measured")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="one")
    sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": "2", "MessageBody": "two"}])
    sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0)
    make_function(session, "measured", LOG_METRICS)
    session.client("lambda").invoke(FunctionName="measured")
    metrics = [
        ("AWS/SQS", "NumberOfMessagesSent", "QueueName", "measured", "Sum"),
        ("AWS/SQS", "NumberOfMessagesReceived", "QueueName", "measured", "Sum"),
        ("AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", "measured", "Maximum"),
        ("AWS/Lambda", "Invocations", "FunctionName", "measured", "Sum"),
        ("Signalbox", "OfferDenied", "service", "rendezvous", "Sum"),
    ]
    now = datetime.now(UTC)

    answer = cloudwatch.get_metric_data(
        MetricDataQueries=[
            {
                "Id": f"m{number}",
                "MetricStat": {
                    "Metric": {"Namespace": space, "MetricName": name, "Dimensions": [{"Name": kind, "Value": value}]},
                    "Period": 60,
                    "Stat": statistic,
                },
            }
            for number, (space, name, kind, value, statistic) in enumerate(metrics)
        ],
        StartTime=now - timedelta(hours=1),
        EndTime=now + timedelta(minutes=1),
    )

    assert [sum(result["Values"]) for result in answer["MetricDataResults"]] == [2, 2, 2, 1, 2]
