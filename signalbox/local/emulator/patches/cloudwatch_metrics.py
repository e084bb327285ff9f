"""Patch: CloudWatch has the metrics that functions log, and those of queues, as on AWS.

MiniStack ignores the embedded metric format in the logs of functions, and has no metrics of SQS. It keeps each value of
a metric, and reads all of them for each request; this patch keeps one set of statistics for each minute. Percentiles of
logged metrics are therefore not available.
"""

import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original

CLOUDWATCH, SQS = "ministack.services.cloudwatch", "ministack.services.sqs"
RECORD, READ, BUCKET = f"{CLOUDWATCH}:record_metric", f"{CLOUDWATCH}:_get_metric_data", f"{CLOUDWATCH}:_metric_bucket"
DIMENSIONS = f"{CLOUDWATCH}:_dims_key"
LOG = "ministack.services.lambda_svc:_emit_lambda_logs"
SEND, RECEIVE = f"{SQS}:_act_send_message", f"{SQS}:_act_receive_message"
HANDLERS = f"{SQS}:_HANDLERS"
QUEUES, QUEUE_URLS = f"{SQS}:_queues", f"{SQS}:_queue_name_to_url"
MARK = '"CloudWatchMetrics"'  # of a line in the embedded metric format
NAMESPACE, DIMENSION, SENT = "AWS/SQS", "QueueName", "NumberOfMessagesSent"
RECEIVED, EMPTY = "NumberOfMessagesReceived", "NumberOfEmptyReceives"
MINUTE_SECONDS = 60

Point = MutableMapping[str, Any]
Record = Callable[[str, str, float, str, Mapping[str, str]], None]
"""Records a value of a metric: namespace, name, value, unit, dimensions."""


def by_minute(
    bucket: Callable[[tuple[str, str, str]], list[Point]],
    key_of: Callable[[Mapping[str, str]], str],
    lock: threading.Lock,
    *,
    replaces: bool = False,
) -> Record:
    """Return a `record_metric` that adds a value to the statistics of the current minute, or replaces them."""

    def record(namespace: str, name: str, value: float, unit: str = "None", dimensions: Any = None) -> None:  # noqa: ANN401 - MiniStack's signature
        dimensions = dict(dimensions or {})
        minute = time.time() // MINUTE_SECONDS * MINUTE_SECONDS
        with lock:
            points = bucket((namespace, name, key_of(dimensions)))
            if not points or points[-1]["Timestamp"] != minute:
                points.append({"Timestamp": minute, "Unit": unit, "Dimensions": dimensions, "Value": 0.0})
            points[-1]["_stat"] = _added(None if replaces else points[-1].get("_stat"), float(value))

    return record


def _added(present: Mapping[str, float] | None, value: float) -> dict[str, float]:
    if present is None:
        return {"SampleCount": 1.0, "Sum": value, "Minimum": value, "Maximum": value}
    return {
        "SampleCount": present["SampleCount"] + 1,
        "Sum": present["Sum"] + value,
        "Minimum": min(present["Minimum"], value),
        "Maximum": max(present["Maximum"], value),
    }


def logged_metrics(log: str) -> Iterator[tuple[str, str, float, str, Mapping[str, str]]]:
    """Yield the metrics in the log of a run: namespace, name, value, unit and dimensions.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
    """
    for line in log.splitlines():
        if MARK in line:
            yield from _metrics_of_line(line)


def _metrics_of_line(line: str) -> Iterator[tuple[str, str, float, str, Mapping[str, str]]]:
    try:
        document = json.loads(line)
        directives = document["_aws"]["CloudWatchMetrics"]
    except (ValueError, KeyError, TypeError):
        return  # another line that contains the word
    for directive in directives:
        for names in directive["Dimensions"]:
            dimensions = {name: document[name] for name in names}
            for metric in directive["Metrics"]:
                for value in _values(document[metric["Name"]]):
                    yield directive["Namespace"], metric["Name"], value, metric.get("Unit", "None"), dimensions


def _values(value: float | Sequence[float]) -> Iterable[float]:
    return value if isinstance(value, Sequence) else (value,)


def logging(log: Callable[..., None], record: Record) -> Callable[..., None]:
    """Return a `log` of a run that records the metrics in it, too."""

    def log_and_record(function: object, request_id: str, text: str, *others: object, **named: object) -> None:
        log(function, request_id, text, *others, **named)
        for metric in logged_metrics(text or ""):
            record(*metric)

    return log_and_record


def counting(send: Callable[..., dict[str, Any]], record: Record) -> Callable[..., dict[str, Any]]:
    """Return a `send` of one message that counts it at its queue."""

    def send_and_count(data: Mapping[str, Any], url: str) -> dict[str, Any]:
        answer = send(data, url)
        record(NAMESPACE, SENT, 1, "Count", _dimensions(data, url))
        return answer

    return send_and_count


def counting_receives(
    receive: Callable[..., Awaitable[dict[str, Any]]], record: Record
) -> Callable[..., Awaitable[dict[str, Any]]]:
    """Return a `receive` that counts its messages, or an empty receive, at its queue."""

    async def receive_and_count(data: Mapping[str, Any], url: str) -> dict[str, Any]:
        answer = await receive(data, url)
        count = len(answer.get("Messages", ()))
        record(NAMESPACE, RECEIVED if count else EMPTY, count or 1, "Count", _dimensions(data, url))
        return answer

    return receive_and_count


def _dimensions(data: Mapping[str, Any], url: str) -> Mapping[str, str]:
    return {DIMENSION: str(data.get("QueueUrl", url)).rpartition("/")[2]}


def reading(
    read: Callable[..., object], record: Record, messages: Callable[[str], Sequence[Point] | None]
) -> Callable[..., object]:
    """Return a GetMetricData that measures the requested queues first; `messages` are those of a queue by its name."""

    def measure_and_read(params: object, request: Mapping[str, Any], *others: object) -> object:
        for name in {
            name for query in (request or {}).get("MetricDataQueries", ()) for name in requested_queues(query)
        }:
            found = messages(name)
            for metric, value in _measured(found).items() if found is not None else ():
                record(NAMESPACE, metric, value, "Count", {DIMENSION: name})
        return read(params, request, *others)

    return measure_and_read


def requested_queues(query: Mapping[str, Any]) -> Iterator[str]:
    """Yield the name of the queue that a query is about, unless it reads the messages sent."""
    metric = query.get("MetricStat", {}).get("Metric", {})
    if metric.get("Namespace") == NAMESPACE and metric.get("MetricName") != SENT:
        yield from (one["Value"] for one in metric.get("Dimensions", ()) if one["Name"] == DIMENSION)


def _measured(messages: Sequence[Point]) -> dict[str, float]:
    now = time.time()
    hidden = [one for one in messages if one["visible_at"] > now]
    in_flight = sum(1 for one in hidden if one["receive_count"])
    waiting = [one["sent_at"] for one in messages if one["visible_at"] <= now or one["receive_count"]]
    return {
        "ApproximateNumberOfMessagesVisible": len(messages) - len(hidden),
        "ApproximateNumberOfMessagesNotVisible": in_flight,
        "ApproximateNumberOfMessagesDelayed": len(hidden) - in_flight,
        "ApproximateAgeOfOldestMessage": max(0.0, now - min(waiting, default=now)),
    }


def _messages_of(name: str) -> list[Point] | None:
    # Resolved for each request: MiniStack may replace its tables.
    url = original(QUEUE_URLS).get(name)
    queue: Mapping[str, list[Point]] | None = url and original(QUEUES).get(url)
    return None if queue is None else list(queue["messages"])


def _replacements() -> Mapping[str, object]:
    bucket, dimensions, lock = original(BUCKET), original(DIMENSIONS), threading.Lock()
    record = by_minute(bucket, dimensions, lock)
    # So that a queue that has become empty is empty at once.
    measure = by_minute(bucket, dimensions, lock, replaces=True)
    send = counting(original(SEND), record)
    receive = counting_receives(original(RECEIVE), record)
    return {
        RECORD: record,
        READ: reading(original(READ), measure, _messages_of),
        LOG: logging(original(LOG), record),
        SEND: send,
        HANDLERS: {**original(HANDLERS), "SendMessage": send, "ReceiveMessage": receive},
    }


PATCH = Patch(
    sources={
        RECORD: "7f777bfbe523a0c5",
        READ: "bf6a8e1132a2230c",
        BUCKET: "be62c5f1548dc00e",
        DIMENSIONS: "a304eb3ef986fb56",
        LOG: "111efbf06968bb20",
        SEND: "3abd766508c885c6",
        RECEIVE: "abc94f693de18aee",
    },
    replacements=_replacements,
)
