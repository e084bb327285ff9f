"""The health check of the table and the queues."""

from botocore.exceptions import EndpointConnectionError

from signalbox.aws.live.health import Health


def test_what_answers_is_no_trouble(exchange_table, sqs):
    urls = {"inbox": sqs.create_queue(QueueName="inbox")["QueueUrl"]}

    assert Health(exchange_table, sqs, urls).problems() == {}


def test_what_does_not_answer_is_told_by_its_name(exchange_table, sqs):
    url = sqs.create_queue(QueueName="inbox")["QueueUrl"]
    exchange_table.delete()

    def unreachable(**_: object) -> None:
        raise EndpointConnectionError(endpoint_url="https://sqs")

    sqs.meta.events.register("before-send.sqs", unreachable)

    reported = Health(exchange_table, sqs, {"inbox": url}).problems()

    assert reported == {"table": "ResourceNotFoundException", "inbox": "EndpointConnectionError"}
