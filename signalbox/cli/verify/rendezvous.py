"""Rendezvous: offers over SQS, HTTP and AMP, a proxy's poll and answer, and an offer without an answer."""

import json
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from urllib.request import Request, urlopen

from signalbox.cli.verify.trial import NamedTrial
from signalbox.clients.rendezvous.amp import amp_path, armored
from signalbox.clients.rendezvous.client import BrokerRefused
from signalbox.clients.rendezvous.simulator import ProxySimulator, sample_answer, sample_offer, wait_for_proxy
from signalbox.errors import SignalboxError
from signalbox.flows.rendezvous import CAPABILITY, exchange_answer, note_answer, offers_over_sqs, sqs_rendezvous
from signalbox.flows.trial import WrongResult, expect
from signalbox.rendezvous.wire.offer import offer_body
from signalbox.rendezvous.wire.reply import ClientReply
from signalbox.verify.names import began_at
from signalbox.verify.patience import FIRST_OFFER_SECONDS, IAM_SECONDS
from signalbox.verify.questions import OFFER_START, REDELIVERY
from signalbox.verify.report import Answer, start_seconds

OFFERS = 3
HTTP_SECONDS = 30.0
PARKED_SECONDS = 5.0  # an offer that is denied at once gets its error within two


def verify_rendezvous(trial: NamedTrial) -> None:
    """Run all steps."""
    with trial.journal.step(CAPABILITY, "the client's key"):
        _await_key(trial)
    with trial.journal.step(CAPABILITY, "a first rendezvous, which starts the functions"):
        _await_answer(trial)
    offers_over_sqs(trial, count=OFFERS, client_id=lambda: _client_id(trial))
    with trial.journal.step(CAPABILITY, "offer over HTTP") as timing:
        _over_http(trial, "client", timing.latencies, use_amp=False)
    with trial.journal.step(CAPABILITY, "offer over AMP") as timing:
        _over_http(trial, "amp", timing.latencies, use_amp=True)
    with trial.journal.step(CAPABILITY, "offer without an answer") as timing:
        timing.latencies.append(_parked(trial))
    with trial.journal.step(CAPABILITY, "the start of `offer`") as timing:
        timing.detail = _start_of_offer(trial)


def _await_answer(trial: NamedTrial) -> None:
    """Send offers until one is answered. Raises `WrongResult` with the last problem."""
    problem = ""

    def is_answered() -> bool:
        nonlocal problem
        try:
            return exchange_answer(trial.deployment, sample_offer(secrets.token_hex(8)), client_id=_client_id(trial))[1]
        except SignalboxError as error:
            problem = str(error)
            return False

    try:
        trial.wait_until(is_answered, "an offer is answered", seconds=FIRST_OFFER_SECONDS)
    except WrongResult as error:
        raise WrongResult(f"{error} ({problem or 'an answer was not accepted'})") from error


def _client_id(trial: NamedTrial) -> str:
    return trial.names.client_id(secrets.token_hex(8))


def _await_key(trial: NamedTrial) -> None:
    """Wait until AWS knows the client's key: only then is the error for a client without a queue that there is none."""
    rendezvous = sqs_rendezvous(trial.deployment)

    def is_known() -> bool:
        try:
            rendezvous.queues.get_queue_url(QueueName=rendezvous.client_queue_prefix + _client_id(trial))
        except rendezvous.queues.exceptions.QueueDoesNotExist:
            return True
        except Exception as error:
            if "InvalidClientTokenId" not in str(error) and "AccessDenied" not in str(error):
                raise
        return False

    trial.wait_until(is_known, "AWS knows the client's key", seconds=IAM_SECONDS)


def _over_http(trial: NamedTrial, path: str, latencies: list[float], *, use_amp: bool) -> None:
    url, clients_url = trial.deployment.rendezvous_url, trial.deployment.clients_url
    offer = sample_offer(secrets.token_hex(8))
    body = offer_body(offer)
    sent_to = f"{clients_url}{amp_path(body) if use_amp else path}"
    request = Request(sent_to, data=None if use_amp else body.encode())  # noqa: S310 - the stage's own URL
    with ThreadPoolExecutor() as pool:
        served = pool.submit(ProxySimulator(url).serve)
        wait_for_proxy(url)
        started = time.monotonic()
        with urlopen(request, timeout=HTTP_SECONDS) as response:  # noqa: S310 - as above
            text = response.read().decode()
        latencies.append(time.monotonic() - started)
        reply = ClientReply.parse((armored(text) if use_amp else text).encode())
        expect(not reply.error, f"the broker refused the offer: {reply.error}")
        expect(json.loads(reply.answer) == json.loads(sample_answer(offer)), "the answer is not the proxy's")
        expect(served.result().accepted, "the broker did not accept the proxy's answer")
    note_answer(trial, "client by HTTP")


def _parked(trial: NamedTrial) -> float:
    """Send an offer that no proxy takes; return the time until the error, which its redelivery sends."""
    visibility = _visibility_seconds(trial)
    started, text = time.monotonic(), ""
    try:
        offer = offer_body(sample_offer(secrets.token_hex(8)))
        sqs_rendezvous(trial.deployment).exchange(offer, client_id=_client_id(trial))
    except BrokerRefused as refused:
        text = refused.text
    took = time.monotonic() - started
    trial.meter.note(CAPABILITY, "refusal")
    trial.meter.note(CAPABILITY, "client by SQS")
    expect(text, "an offer that no proxy took has an answer: another proxy polls this stage")
    answer: dict[str, Answer] = {
        "visibility_timeout_seconds": visibility,
        "seconds_until_the_error": round(took, 2),
        "error": text,
    }
    trial.journal.answer(REDELIVERY, answer, is_expected=took > PARKED_SECONDS)
    expect(took > PARKED_SECONDS, f"the offer was refused after {took:.1f} s with {text!r}, and not parked")
    return took


def _visibility_seconds(trial: NamedTrial) -> int:
    url, sqs = trial.deployment.outputs["BrokerQueueUrl"], trial.deployment.session().client("sqs")
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])
    return int(found["Attributes"]["VisibilityTimeout"])


def _start_of_offer(trial: NamedTrial) -> str:
    """Compare the starts of the function `offer` in this run, each with its first call, with the visibility."""
    session = trial.deployment.session()
    lambda_, logs = session.client("lambda"), session.client("logs")
    queue = trial.deployment.outputs["BrokerQueueArn"]
    (mapping, *_) = lambda_.list_event_source_mappings(EventSourceArn=queue)["EventSourceMappings"]
    function = lambda_.get_function_configuration(FunctionName=mapping["FunctionArn"])
    lines: list[str] = []
    with suppress(logs.exceptions.ResourceNotFoundException):
        pages = logs.get_paginator("filter_log_events").paginate(
            logGroupName=function["LoggingConfig"]["LogGroup"],
            filterPattern='"Init Duration"',
            startTime=int(began_at(trial.names.run).timestamp() * 1000),
        )
        lines = [event["message"] for page in pages for event in page["events"]]
    starts, visibility = (
        [taken for line in lines if (taken := start_seconds(line)) is not None],
        _visibility_seconds(trial),
    )
    answer = {
        "starts": len(starts),
        "longest_seconds": max(starts, default=None),
        "visibility_timeout_seconds": visibility,
    }
    trial.journal.answer(OFFER_START, answer, is_expected=max(starts, default=0.0) < visibility)
    return f"{len(starts)} starts in this run"
