"""The demo of rendezvous: a client's offer, a proxy's answer, and the deletion of the client's queue."""

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
    """Match a client and a proxy, and yield the results. Raises `UnavailableError` if the answer is wrong."""
    offer = sample_offer(secrets.token_hex(8))
    with step("rendezvous: an offer, an answer"):
        answer, accepted = exchange_answer(deployment, offer)
    if answer.session_description != sample_answer(offer) or not accepted:
        raise UnavailableError("the answer is not the one that the proxy returned for this offer")
    yield (
        "offer in",
        f"{len(offer_body(offer))} bytes to {deployment.outputs['BrokerQueueName']}, client {answer.client_id}",
    )
    yield "answer out", f"{len(answer.session_description)} bytes, identical to the proxy's"
    yield "time", f"{answer.after.total_seconds():.2f} s, including the first second, which the client sleeps"
    yield from _queue_rows(deployment, answer.client_id)


def exchange_answer(
    deployment: "Deployment", offer: str, *, client_id: str | None = None
) -> tuple[ReceivedAnswer, bool]:
    """Send an offer over SQS while a proxy polls; return the answer, and whether the broker accepted it."""
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
        answer = rendezvous.exchange(offer_body(offer), client_id=client_id)
        return answer, served.result().accepted is True


def _queue_rows(deployment: "Deployment", client_id: str) -> Iterator[Row]:
    """Yield the client's queue, end its lease early, and invoke the sweep, which deletes the queue."""
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
    yield "queues deleted", f"{deleted}, by the sweep (the demo ended the lease early)"
