"""The flow of rendezvous: offers over SQS, each with the answer of a simulated proxy."""

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from signalbox.aws.rendezvous.credentials import ClientCredentials, client_credentials
from signalbox.clients.deployment import Deployment
from signalbox.clients.rendezvous.client import ReceivedAnswer, SqsRendezvous, new_client_id
from signalbox.clients.rendezvous.simulator import ProxySimulator, sample_answer, sample_offer, wait_for_proxy
from signalbox.flows.trial import Trial, expect
from signalbox.rendezvous.wire.offer import offer_body

CAPABILITY = "rendezvous"


def offers_over_sqs(trial: Trial, *, count: int, client_id: Callable[[], str] = new_client_id) -> ReceivedAnswer:
    """Send offers one after another while a proxy polls, and return the last answer."""
    with trial.journal.step(CAPABILITY, "offer over SQS, answer over HTTP") as timing:
        for _ in range(count):
            offer = sample_offer(secrets.token_hex(8))
            answer, accepted = exchange_answer(trial.deployment, offer, client_id=client_id())
            expect(accepted, "the broker did not accept the proxy's answer")
            expect(answer.session_description == sample_answer(offer), "the answer is not the proxy's")
            timing.latencies.append(answer.after.total_seconds())
            note_answer(trial, "client by SQS")
        sent, queue = len(offer_body(offer)), trial.deployment.outputs["BrokerQueueName"]
        timing.detail = (
            f"{sent} bytes to {queue}, client {answer.client_id}; {len(answer.session_description)} bytes out, "
            f"identical to the proxy's; {answer.after.total_seconds():.2f} s, with the second that a client sleeps"
        )
    return answer


def note_answer(trial: Trial, method: str) -> None:
    """Count the actions of the stage for an answered offer."""
    for what in ("answer", "poll", method):
        trial.meter.note(CAPABILITY, what)


def exchange_answer(deployment: Deployment, offer: str, *, client_id: str | None = None) -> tuple[ReceivedAnswer, bool]:
    """Send an offer over SQS while a proxy polls; return the answer, and whether the broker accepted it."""
    rendezvous, proxy = sqs_rendezvous(deployment), ProxySimulator(deployment.rendezvous_url)
    with ThreadPoolExecutor() as pool:
        served = pool.submit(proxy.serve)
        wait_for_proxy(deployment.rendezvous_url)
        answer = rendezvous.exchange(offer_body(offer), client_id=client_id)
        return answer, served.result().accepted is True


def sqs_rendezvous(deployment: Deployment, key: ClientCredentials | None = None) -> SqsRendezvous:
    """Return a client with the limited key of the stage's clients."""
    outputs = deployment.outputs
    sqs = deployment.session_of(key or client_credentials(deployment.session(), outputs)).client("sqs")
    return SqsRendezvous(sqs, outputs["BrokerQueueUrl"], client_queue_prefix=outputs["ClientQueuePrefix"])
