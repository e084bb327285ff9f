"""The latency from sender to consumer, through a split and directly."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from benchmarks.shared.figures import Summary, summary
from benchmarks.shared.ways import BETWEEN_SECONDS, WARM_UP, Way, measure
from signalbox.cli.splitting.held_sessions import held_session
from signalbox.cli.splitting.stage import control_of
from signalbox.clients.splitting.heartbeats import HeartbeatThread
from signalbox.clients.splitting.sessions import SessionClient, SessionRequest
from signalbox.flows.consumer import DeployedConsumer, wait_until
from signalbox.queues import QueueName

if TYPE_CHECKING:
    from signalbox.clients.deployment import Deployment

MESSAGES = 100
START_TIMEOUT = timedelta(minutes=2)
QUEUE, DIRECT = QueueName("demo-measured"), QueueName("demo-direct")
CONSUMER, OWNER = "demo-measured-consumer", "benchmark"


def on_stage(deployment: "Deployment", *, messages: int, say: Callable[[str], None]) -> dict[str, Summary]:
    """Return the milliseconds to the deployed and to a local consumer, each directly and through a split."""
    session = deployment.session()
    prefix = deployment.outputs["TemporaryQueuePrefix"]
    say("a deployed consumer")
    consumer = DeployedConsumer.deploy(session, CONSUMER, [QUEUE], temporary_prefix=prefix)
    found = {"deployed consumer, directly": _deployed(consumer, messages=messages)}
    sqs = session.client("sqs")
    direct = sqs.create_queue(QueueName=DIRECT)["QueueUrl"]
    with control_of(deployment) as control:
        control.ask("apply", {"documents": [consumer.registry()]})
        client = SessionClient(control, _request(consumer))
        say("a session starts")
        with held_session(client, timeout=START_TIMEOUT) as state, HeartbeatThread(client, print).running():
            found["deployed consumer, split"] = _deployed(consumer, messages=messages)
            attributes = {"owner": OWNER}
            ways = [
                Way("local consumer, directly", direct, direct, attributes),
                Way("local consumer, split", consumer.queues[QUEUE], state.queues[0].url, attributes),
            ]
            return found | measure(sqs, ways, messages=messages, say=say)


def _request(consumer: DeployedConsumer) -> SessionRequest:
    entry = {"queue_type": "SQS", "message_filter": {"owner": f"^{OWNER}$"}}
    return SessionRequest(consumer.target, OWNER, OWNER, {"feature": {"split_queues": {QUEUE: entry}}})


def _deployed(consumer: DeployedConsumer, *, messages: int) -> Summary:
    """Return the latency to a consumer's function; both clocks are this machine's."""
    sqs, seen, count = consumer.session.client("sqs"), len(consumer.received()), WARM_UP + messages
    for _ in range(count):
        sqs.send_message(QueueUrl=consumer.queues[QUEUE], MessageBody=str(time.time_ns()))
        time.sleep(BETWEEN_SECONDS)
    wait_until(lambda: len(consumer.received()) >= seen + count, "the deployed consumer has all messages")
    receipts = consumer.received()[seen + WARM_UP :]
    found = summary([(one.moment_ns - int(one.body)) / 1e6 for one in receipts])
    assert found is not None
    return found
