"""How long a message takes from its sender to a consumer: through a split, and directly."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from benchmarks.figures import Summary, summary
from signalbox.cli.splitting_held import Pulse, held
from signalbox.cli.splitting_stage import control_of
from signalbox.errors import UnavailableError
from signalbox.local.consumer import DeployedConsumer, wait_until
from signalbox.queues import QueueName
from signalbox.splitting.sessions import SessionClient, SessionRequest

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import MessageAttributeValueTypeDef

    from signalbox.cli.deployment import Deployment

MESSAGES = 100
WARM_UP = 10
PATIENCE_SECONDS = 30
LOOK_SECONDS = 0.005  # between two looks, so that looking does not keep the emulator from its work
BETWEEN_SECONDS = 0.2  # two messages, so that none waits until a function is done with another
START_TIMEOUT = timedelta(minutes=2)
QUEUE, DIRECT = QueueName("demo-measured"), QueueName("demo-direct")
CONSUMER, OWNER = "demo-measured-consumer", "benchmark"


@dataclass(frozen=True, slots=True)
class Way:
    """Where a message is put in, and where it comes out, with the attributes by which it finds its way."""

    name: str
    source_url: str
    destination_url: str
    attributes: Mapping[str, str]


def on_stage(deployment: "Deployment", *, messages: int, say: Callable[[str], None]) -> dict[str, Summary]:
    """Return the milliseconds to the deployed consumer and to a session's, each directly and through a split."""
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
        with held(client, timeout=START_TIMEOUT) as state, Pulse(client).beating():
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
    """Return how long it takes until the function of a consumer has a message; both clocks are this machine's."""
    sqs, seen, count = consumer.session.client("sqs"), len(consumer.received()), WARM_UP + messages
    for _ in range(count):
        sqs.send_message(QueueUrl=consumer.queues[QUEUE], MessageBody=str(time.time_ns()))
        time.sleep(BETWEEN_SECONDS)
    wait_until(lambda: len(consumer.received()) >= seen + count, "the deployed consumer has all messages")
    receipts = consumer.received()[seen + WARM_UP :]
    found = summary([(one.moment_ns - int(one.body)) / 1e6 for one in receipts])
    assert found is not None
    return found


def measure(sqs: "SQSClient", ways: list[Way], *, messages: int, say: Callable[[str], None]) -> dict[str, Summary]:
    """Return the milliseconds of each way, one message after another, the ways in turn; nobody else may consume."""
    times: dict[str, list[float]] = {way.name: [] for way in ways}
    for number in range(WARM_UP + messages):
        if number % 50 == 0:
            say(f"message {number} of {WARM_UP + messages}")
        for way in ways if number % 2 else reversed(ways):
            time.sleep(BETWEEN_SECONDS)
            taken = _milliseconds(sqs, way, body=f"{way.name}-{number}-{time.time_ns()}")
            if number >= WARM_UP:
                times[way.name].append(taken)
    return {name: found for name, values in times.items() if (found := summary(values))}


def _milliseconds(sqs: "SQSClient", way: Way, *, body: str) -> float:
    attributes: dict[str, MessageAttributeValueTypeDef] = {
        name: {"DataType": "String", "StringValue": text} for name, text in way.attributes.items()
    }
    started = time.perf_counter()
    sqs.send_message(QueueUrl=way.source_url, MessageBody=body, MessageAttributes=attributes)
    while time.perf_counter() - started < PATIENCE_SECONDS:
        # Without a long poll, in which the emulator looks ten times a second only.
        for found in sqs.receive_message(QueueUrl=way.destination_url).get("Messages", []):
            taken = (time.perf_counter() - started) * 1000
            sqs.delete_message(QueueUrl=way.destination_url, ReceiptHandle=found["ReceiptHandle"])
            if found["Body"] == body:
                return taken
        time.sleep(LOOK_SECONDS)
    raise UnavailableError(f"a message did not come through {way.name} within {PATIENCE_SECONDS} s")
