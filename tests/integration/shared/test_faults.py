"""The queues of a split with fault injection, and their restoration: faults, delays and duplicates lose nothing.

`test_verify.py` runs the main flows of all capabilities with faults, and `test_soak.py` adds kills. The pytest header
names the seed; `SIGNALBOX_FAULTS_SEED=… pytest tests/integration/shared/test_faults.py` repeats it.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from signalbox.cli.shared.deployment import Deployment
from signalbox.clients.control import ControlClient, NoControlReply
from signalbox.clients.splitting.sessions import SessionClient, SessionRequest
from signalbox.local.demo.consumer import DeployedConsumer, LocalConsumer, Receipt
from signalbox.queues import QueueName
from signalbox.splitting.control.protocol import GONE
from tests.integration.rendezvous.peers import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

PATIENCE_SECONDS = 240.0
MESSAGES, KEYS = 60, 4
STANDARD, FIFO = QueueName("demo-storms"), QueueName("demo-orders.fifo")
DEVELOPER, OTHERS = "alice", "others"


def test_a_standard_and_a_fifo_queue_are_split_and_restored(faulty_deployment: Deployment):
    """A standard queue repeats messages and a FIFO queue does not; both deliver all, each to its consumer."""
    session, outputs = faulty_deployment.session(), faulty_deployment.outputs
    consumer = DeployedConsumer.deploy(
        session, "demo-with-faults", [STANDARD, FIFO], temporary_prefix=outputs["TemporaryQueuePrefix"]
    )
    before = consumer.mappings()

    developer = _developer(faulty_deployment, consumer)
    ready = developer.start(timeout=timedelta(seconds=PATIENCE_SECONDS))
    with LocalConsumer(session, [queue.url for queue in ready.queues]).reading() as reader:
        sent = {queue: _send(session, consumer.queues[queue], is_fifo=queue == FIFO) for queue in (STANDARD, FIFO)}
        wait_for(
            lambda: _bodies(reader.received) | _bodies(consumer.received()) == sent[STANDARD] | sent[FIFO],
            "all messages",
            seconds=PATIENCE_SECONDS,
        )
    developer.stop()
    wait_for(lambda: _has_ended(developer), "the session and the split have ended", seconds=PATIENCE_SECONDS)

    received = {DEVELOPER: reader.received, OTHERS: consumer.received()}
    assert _first_recipients(received) == {body: json.loads(body)["author"] for body in sent[STANDARD] | sent[FIFO]}
    for author, receipts in received.items():
        assert _fifo(receipts) == {f"g{number}": _numbers(author, number) for number in range(KEYS)}
    assert consumer.mappings() == before


def _developer(deployment: Deployment, consumer: DeployedConsumer) -> SessionClient:
    """Return a developer's client of a registered consumer."""
    outputs, sqs = deployment.outputs, deployment.session().client("sqs")
    queues = {"*": {"queue_type": "SQS", "message_filter": {"author": f"^{DEVELOPER}$"}}}
    request = SessionRequest(consumer.target, DEVELOPER, f"{DEVELOPER}@laptop", {"feature": {"split_queues": queues}})
    control = ControlClient(sqs, outputs["SplitControlQueueUrl"], outputs["SplitReplyQueueUrl"])
    control.ask("apply", {"documents": [consumer.registry()]})
    return SessionClient(control, request)


def _has_ended(developer: SessionClient) -> bool:
    """Return whether the session is gone and its queues are no longer split; False if the stage does not reply."""
    with suppress(NoControlReply):
        status: Any = developer.control.ask("status", {"target": developer.request.target})
        return developer.heartbeat().phase == GONE and not status["splits"]
    return False


def _send(session: Any, url: str, *, is_fifo: bool) -> set[str]:
    """Send messages of the developer and of others; return their bodies."""
    sqs, bodies = session.client("sqs"), set()
    for number in range(MESSAGES):
        author, group = (DEVELOPER, OTHERS)[number % 2], f"g{number // 2 % KEYS}"
        body = json.dumps({"number": number, "author": author, "group": group, "fifo": is_fifo})
        ordered = {"MessageGroupId": group, "MessageDeduplicationId": str(number)} if is_fifo else {}
        attributes = {"author": {"DataType": "String", "StringValue": author}}
        sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=attributes, **ordered)
        bodies.add(body)
    return bodies


def _bodies(receipts: Sequence[Receipt]) -> set[str]:
    return {one.body for one in receipts}


def _first_recipients(received: Mapping[str, Sequence[Receipt]]) -> dict[str, str]:
    """Return the first recipient of each message: the second copy of one may wait when the session ends."""
    receipts = [(one.moment_ns, one.body, name) for name, found in received.items() for one in found]
    return {body: name for _, body, name in sorted(receipts, reverse=True)}


def _fifo(receipts: Sequence[Receipt]) -> dict[str, list[int]]:
    """Return the numbers of each group's FIFO messages in the order of their receipts."""
    groups: dict[str, list[int]] = {}
    for one in (json.loads(one.body) for one in receipts):
        if one["fifo"]:
            groups.setdefault(one["group"], []).append(one["number"])
    return groups


def _numbers(author: str, group: int) -> list[int]:
    first = (DEVELOPER, OTHERS).index(author)
    return [number for number in range(first, MESSAGES, 2) if number // 2 % KEYS == group]
