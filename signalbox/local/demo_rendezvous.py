"""The demo of rendezvous: a client's offer, a proxy's answer, and the queue's end."""

import json
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from signalbox.aws.rendezvous.credentials import client_credentials
from signalbox.aws.shared.leases import DynamoLeases
from signalbox.clients.rendezvous.client import ReceivedAnswer, SqsRendezvous
from signalbox.clients.rendezvous.simulator import ProxySimulator, sample_answer, sample_offer, wait_for_proxy
from signalbox.errors import UnavailableError
from signalbox.local.progress import step
from signalbox.queues import Lease, QueueName, QueueUrl
from signalbox.rendezvous.wire.offer import offer_body

if TYPE_CHECKING:
    from signalbox.cli.shared.deployment import Deployment

Row = tuple[str, str]


def rendezvous_rows(deployment: "Deployment") -> Iterator[Row]:
    """Bring a client and a proxy together and yield what was seen."""
    offer = sample_offer(secrets.token_hex(8))
    with step("rendezvous: an offer, an answer"):
        answer, accepted = _exchange(deployment, offer)
    if answer.session_description != sample_answer(offer) or not accepted:
        raise UnavailableError("the answer that came is not the one that the proxy gave to this offer")
    yield (
        "offer in",
        f"{len(offer_body(offer))} bytes to {deployment.outputs['BrokerQueueName']}, client {answer.client_id}",
    )
    yield "answer out", f"{len(answer.session_description)} bytes, the proxy's own"
    yield "time", f"{answer.after.total_seconds():.2f} s, of which the client sleeps the first"
    yield from _queue_rows(deployment, answer.client_id)


def _exchange(deployment: "Deployment", offer: str) -> tuple[ReceivedAnswer, bool]:
    client = deployment.session_of(client_credentials(deployment.session(), deployment.outputs))
    rendezvous = SqsRendezvous(
        client.client("sqs"),
        deployment.outputs["BrokerQueueUrl"],
        client_queue_prefix=deployment.outputs["ClientQueuePrefix"],
    )
    proxy = ProxySimulator(deployment.rendezvous_url)
    with ThreadPoolExecutor() as pool:
        served = pool.submit(proxy.serve_once)
        wait_for_proxy(deployment.rendezvous_url)
        answer = rendezvous.exchange(offer_body(offer))
        return answer, served.result().accepted is True


def _queue_rows(deployment: "Deployment", client_id: str) -> Iterator[Row]:
    """Show the client's queue, bring the end of its lease forward, and let the sweep delete it."""
    session, outputs = deployment.session(), deployment.outputs
    name = QueueName(outputs["ClientQueuePrefix"] + client_id)
    url = QueueUrl(session.client("sqs").get_queue_url(QueueName=name)["QueueUrl"])
    yield "queue created", name
    leases = DynamoLeases(session.resource("dynamodb").Table(outputs["LeaseTable"]))
    leases.put(Lease(name, url, "rendezvous", due_at=datetime.now(UTC)))
    invoked = session.client("lambda").invoke(
        FunctionName=outputs["SweepFunctionName"], Payload=json.dumps({"task": "leases"})
    )
    deleted = json.loads(invoked["Payload"].read())["deleted"]
    yield "queues deleted", f"{deleted}, by the sweep (lease brought forward for the demo)"
