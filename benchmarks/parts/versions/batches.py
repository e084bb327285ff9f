"""Routes batches of publications with the function of the version whose folder is the current one, and takes the time.

Run as a file by the Python of that version, so it imports only what older versions have, too. The calls of AWS go to a
stage; each is made slower by what the service takes on AWS, as assumed.
"""

import json
import sys
import time
from itertools import count
from typing import Any

import boto3
import botocore.session

from lambdas.exchange import route
from lambdas.shared import instance
from signalbox.exchange.model.records import OrderBy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.router.publication_metadata import (
    AcknowledgementTarget,
    PublicationMetadata,
    RealmPublication,
    message_for,
)
from signalbox.live.session.state import ConnectionId
from signalbox.live.wamp.messages import Payload, PublicationId, RequestId
from signalbox.messages import outgoing

HANDLER = "lambdas.exchange.route.handler"
DELAYS = {"dynamodb": 5.0, "TransactWriteItems": 10.0, "sqs": 10.0, "firehose": 20.0}
"""Milliseconds of a call by service, or by operation where it differs: assumed, as in `order_batches`."""


class Clock:
    """The times at which the calls of a batch ended, and the delays before them."""

    def __init__(self) -> None:
        self.delays: dict[str, float] = {}
        self.ended: list[tuple[str, float]] = []

    def before(self, model: Any, **_: Any) -> None:  # noqa: ANN401 - botocore's
        """Wait as long as AWS takes for a call."""
        milliseconds = self.delays.get(model.name, self.delays.get(model.service_model.service_name, 0.0))
        time.sleep(milliseconds / 1000)

    def after(self, model: Any, **_: Any) -> None:  # noqa: ANN401 - botocore's
        """Record the end of a call."""
        self.ended.append((model.name, time.perf_counter()))


def main() -> None:
    """Answer each request on the standard input with a line of times."""
    clock, numbers = Clock(), count(round(time.time()))
    session = botocore.session.get_session()
    boto3.setup_default_session(botocore_session=session)
    # Later versions make some clients without boto3, in a session of their own.
    for one in (session, *(made() for made in [getattr(instance, "_session", None)] if made)):
        one.register("before-call", clock.before)
        one.register("after-call", clock.after)
    for line in sys.stdin:
        request = json.loads(line)
        clock.delays = request["delays"]
        found = []
        for _ in range(request["batches"]):
            records = [_record(request, next(numbers)) for _ in range(request["events"])]
            clock.ended.clear()
            begun = time.perf_counter()
            answer = route.handler({"Records": records}, None)
            ended = time.perf_counter()
            assert answer == {"batchItemFailures": []}, answer
            sent = [at for name, at in clock.ended if name == "SendMessageBatch"]
            found.append(
                {
                    "outboxes": (sent[0] - begun) * 1000,
                    "published": (sent[-1] - begun) * 1000,
                    "all": (ended - begun) * 1000,
                    "calls": len(clock.ended),
                }
            )
        print(json.dumps(found), flush=True)


def _record(request: dict[str, Any], number: int) -> dict[str, object]:
    """Return an acknowledged publication of a session as an SQS record."""
    target = AcknowledgementTarget(ConnectionId("publisher="), RequestId(number))
    note = PublicationMetadata(PublicationId(number), acknowledge_to=target)
    topic = RoutingKey(f"{request['topic']}{number % request['topics']}")
    said = RealmPublication(topic, Payload(("x" * 100,)), note, "compared")
    document = outgoing(message_for(said, order_by=OrderBy.TOPIC, deduplication_id=f"{number}"))
    attributes: Any = document["MessageAttributes"]
    sent_at = str(round(time.time() * 1000))
    return {
        "messageId": f"versions-{number}",
        "receiptHandle": "none",
        "body": document["MessageBody"],
        "attributes": {
            "SenderId": f"{request['role_id']}:session",
            "SentTimestamp": sent_at,
            "ApproximateFirstReceiveTimestamp": sent_at,
            "ApproximateReceiveCount": "1",
            "MessageGroupId": document["MessageGroupId"],
            "MessageDeduplicationId": document["MessageDeduplicationId"],
            "SequenceNumber": str(number),
        },
        "messageAttributes": {
            name: {"dataType": one["DataType"], "stringValue": one["StringValue"]} for name, one in attributes.items()
        },
        "eventSourceARN": request["queue_arn"],
    }


if __name__ == "__main__":
    main()
