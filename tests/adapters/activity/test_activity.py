"""The activity of a stage is read with one call of CloudWatch and three queries."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from signalbox.activity.measures import CAPABILITIES, IN_FLIGHT, MOST_MEASURES, SENT, VISIBLE, Sources, measures
from signalbox.aws.activity.stage import StageActivity
from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoQueues
from signalbox.aws.shared.metric_data import metric_values
from signalbox.aws.splitting.splits import DynamoSplits
from signalbox.errors import EffectFailed
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.records import DeclaredQueue, ExchangeRecord
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName
from signalbox.splitting.model.split import Stage
from tests.unit.splitting.control.observed_states import session, split

NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def published(cloudwatch: Any, namespace: str, name: str, dimension: tuple[str, str], *values: float) -> None:
    """Write values of a metric, one for each minute until now."""
    data = [
        {"MetricName": name, "Value": value, "Timestamp": NOW - number * MINUTE}
        | {"Dimensions": [{"Name": dimension[0], "Value": dimension[1]}]}
        for number, value in enumerate(reversed(values))
    ]
    cloudwatch.put_metric_data(Namespace=namespace, MetricData=data)


@pytest.fixture
def cloudwatch(aws: None) -> Any:
    return boto3.client("cloudwatch")


def test_a_stage_is_read_with_five_calls(cloudwatch, split_table, exchange_table):
    DynamoSplits(split_table).create(split(Stage.SPLIT, session()), documents=[])
    original = split(Stage.SPLIT, session()).queues[0].original
    DynamoExchanges(exchange_table).create(ExchangeRecord(ExchangeName("xs_parts"), None, NOW))
    DynamoQueues(exchange_table).create(DeclaredQueue(DeclaredName("q_work"), None, NOW, NOW))
    published(cloudwatch, "AWS/SQS", VISIBLE, ("QueueName", "trial-q_work"), 7)
    published(cloudwatch, "AWS/SQS", SENT, ("QueueName", "trial-xs_parts"), 3, 4)
    published(cloudwatch, "AWS/SQS", VISIBLE, ("QueueName", original), 9, 5)
    published(cloudwatch, "AWS/SQS", IN_FLIGHT, ("QueueName", "broker"), 2)
    published(cloudwatch, "Signalbox", "OfferDenied", ("service", "rendezvous"), 1, 1, 1)
    calls: Counter[str] = Counter()
    for client in (cloudwatch, split_table.client, exchange_table.client):
        client.meta.events.register("before-call", lambda model, **_: calls.update([model.name]))
    sources = Sources({"rendezvous": (QueueName("broker"),), "splitting": (), "exchange": ()})
    names = StageNames("signalbox", "trial-")

    found = StageActivity(cloudwatch, split_table, exchange_table, names, sources).read(NOW)

    by_name = {one.capability: one for one in found}
    assert by_name["exchange"].minutes[-2:] == (3, 4)
    assert by_name["exchange"].backlog == 7
    assert (by_name["splitting"].backlog, by_name["rendezvous"].backlog) == (5, 2)
    assert sum(by_name["rendezvous"].minutes) == 3
    assert calls == {"GetMetricData": 1, "Query": 3, "BatchGetItem": 1}


def test_a_stage_without_splitting_and_rendezvous_has_the_activity_of_the_others(cloudwatch, exchange_table):
    sources = Sources({"exchange": (), "live": (QueueName("inbox"),)})

    found = StageActivity(cloudwatch, None, exchange_table, StageNames("signalbox"), sources).read(NOW)

    assert [one.capability for one in found] == ["exchange", "live"]


def test_all_metrics_fit_into_one_call():
    queues = [QueueName(f"q{number}") for number in range(900)]
    sources = Sources(dict.fromkeys(CAPABILITIES, ())).with_queues(split=queues, exchanges=[], declared=queues)

    assert len(list(measures(sources))) <= MOST_MEASURES


def test_a_table_that_cannot_be_read_is_an_error_to_retry(cloudwatch, split_table, exchange_table):
    split_table.delete()
    names = StageNames("signalbox")

    with pytest.raises(EffectFailed, match="ResourceNotFoundException"):
        StageActivity(cloudwatch, split_table, exchange_table, names, Sources({})).read(NOW)


class Pages:
    """A CloudWatch client that returns one metric a page, or fails."""

    def __init__(self, *, code: str | None = None) -> None:
        self.code = code

    def get_metric_data(self, **asked: Any) -> dict[str, object]:
        if self.code:
            raise ClientError({"Error": {"Code": self.code, "Message": "no"}}, "GetMetricData")
        page = int(asked.get("NextToken", 0))
        result = {"Id": asked["MetricDataQueries"][page]["Id"], "Timestamps": [NOW], "Values": [page + 1.0]}
        return {"MetricDataResults": [result]} | ({"NextToken": "1"} if page == 0 else {})


def test_all_pages_are_read():
    found = metric_values(Pages(), {"one": {}, "other": {}}, since=NOW - MINUTE, until=NOW, about="metrics")

    assert found == {"one": {NOW: 1.0}, "other": {NOW: 2.0}}


def test_a_refused_read_has_the_code_of_aws():
    with pytest.raises(EffectFailed, match="AccessDenied"):
        metric_values(Pages(code="AccessDenied"), {}, since=NOW, until=NOW, about="metrics")
