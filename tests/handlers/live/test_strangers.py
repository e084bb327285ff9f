"""What strangers cost at the limits of the live API is what the threat model states."""

import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from glue_jobs.transforms.prices import REPLY_READS
from tests.fakes.aws import aws, exchange_table, live_table, sqs  # noqa: F401 - fixtures
from tests.handlers.billed_calls import READS
from tests.handlers.live.live_stage import INBOX, REALM, TIMERS, LiveStage, stage  # noqa: F401 - fixtures
from tests.handlers.strangers import Bill, billed, day, stated

RUN = {"milliseconds": 60, "megabytes": 1024}
FRAMES = 10


def idle_connections(stage: LiveStage) -> Bill:  # noqa: F811 - a type
    """Connect, and send nothing; the runs are those of `connect`, the timer, `session` and `deliver`."""
    long_ago = round((datetime.now(UTC) - timedelta(seconds=11)).timestamp() * 1000)
    stage.sqs.send_message(QueueUrl=stage.urls[TIMERS], MessageBody='{"connection": "c1"}')
    with billed(**RUN, runs=6, WebSocket_message=1, WebSocket_connection_minute=1) as bill:
        stage.connect("c1", requestTimeEpoch=long_ago)
        stage.process(TIMERS)
        stage.process()
        stage.connect("c1", routeKey="$disconnect")
        stage.process()
    bill.units[READS] += REPLY_READS
    return bill


def wrong_secrets(stage: LiveStage) -> Bill:  # noqa: F811 - a type
    stage.sqs.send_message(QueueUrl=stage.urls[TIMERS], MessageBody='{"connection": "c1"}')
    with billed(**RUN, runs=10, WebSocket_message=4, WebSocket_connection_minute=1) as bill:
        stage.connect("c1")
        stage.say("c1", 1, REALM, {"authid": "nobody", "authmethods": ["ticket"]})
        stage.say("c1", 5, "wrong", {})
        stage.connect("c1", routeKey="$disconnect")
        stage.process()
        stage.process(TIMERS)
        stage.process()
    bill.units[READS] += 2 * REPLY_READS
    return bill


def frames(stage: LiveStage) -> Bill:  # noqa: F811 - a type
    """Send ten frames at once on a connection that is over, each of which API Gateway puts into the inbox."""
    for _ in range(FRAMES):
        stage.sqs.send_message(
            QueueUrl=stage.urls[INBOX], MessageBody="f[]", MessageGroupId="c1", MessageDeduplicationId=uuid.uuid4().hex
        )
    with billed(**RUN, WebSocket_message=FRAMES, SQS_FIFO_request=FRAMES + 2) as bill:
        assert stage.process() == []
    return Bill(Counter({item: number / FRAMES for item, number in bill.units.items()}))


@pytest.mark.parametrize(
    ("what", "act"),
    [
        ("connections that never join", idle_connections),
        ("connections with wrong secrets", wrong_secrets),
        ("frames", frames),
    ],
)
def test_strangers_cost_what_the_page_states(stage, what, act):  # noqa: F811 - fixture
    rate, usd = stated(what)

    assert day(act(stage), rate) == usd
