"""Concurrent clients, and functions that are killed: every client gets exactly one reply, its own."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pytest

from signalbox.clients.rendezvous.client import BrokerRefused, NoAnswer, SqsRendezvous, new_client_id
from signalbox.clients.rendezvous.simulator import BrokerUnreachableError, ServeResult, sample_answer, sample_offer
from signalbox.local.stage_folder import StageFolder
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body
from signalbox.rendezvous.wire.proxy import ProxyAnswer, answer_body
from tests.integration.rendezvous.peers import PATIENCE_SECONDS, Asked, Parties
from tests.integration.shared.fault_injection import BETWEEN_KILLS, FaultInjector
from tests.patience import Deadline, wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

# Each takes two processes of this machine, in addition to those of the offers: more would measure the machine.
AT_ONCE = 24
LAST = 4  # they may take longer, since their function instances start first
CLIENTS_OF_THE_BURST = 30
PROXIES_OF_THE_BURST = 8
KILLS = 12
KILLED = ("offer", "proxies")
# Clients whose functions may be killed twice within their five seconds.
UNLUCKY = 2


def test_tens_of_clients_and_proxies_at_once_find_each_other(parties: Parties):
    """All proxies reach for the oldest offers at the same moment; every fourth offer was delivered twice."""
    _start_instances(parties)
    parties.expect_proxies(*Nat)
    dead_letters = parties.dead_letters()

    asked = [parties.ask(Nat.RESTRICTED) for _ in range(AT_ONCE)]
    for client in asked[::4]:
        parties.send(offer_body(client.offer, Nat.RESTRICTED), client_id=client.client_id)
    wait_for(lambda: sum(map(bool, map(parties.record, _ids(asked)))) >= AT_ONCE - LAST, "most offers parked")
    proxies = [parties.pool.submit(_serve_one, parties) for _ in range(AT_ONCE)]
    replies = _replies(parties, asked)
    rounds = [proxy.result() for proxy in proxies]

    assert replies == {client.client_id: client.answer for client in asked}
    assert [served.accepted for served in rounds] == [True] * AT_ONCE
    assert Counter(_offer(served) for served in rounds) == Counter(client.offer for client in asked)
    # SQS redelivers a copy that was processed at the same time as its original.
    wait_for(lambda: parties.waiting_messages() == 0, "all offers deleted", seconds=2 * PATIENCE_SECONDS)
    assert [parties.messages_for(client.client_id) for client in asked] == [1] * AT_ONCE
    assert parties.dead_letters() == dead_letters


def _start_instances(parties: Parties) -> None:
    """Start as many instances of each function as the test needs; they are processes of this machine."""
    poll = parties.proxy(relay_pattern="elsewhere.example$")
    body = answer_body(ProxyAnswer("nobody", sample_answer(sample_offer("nobody"))))
    calls = [parties.pool.submit(poll.serve_once) for _ in range(AT_ONCE)]
    calls += [parties.pool.submit(parties.http, "POST", "answer", body) for _ in range(AT_ONCE)]
    for call in calls:
        with suppress(BrokerUnreachableError):  # only the start matters
            call.result()
    clients = [new_client_id() for _ in range(AT_ONCE)]
    for client_id in clients:
        parties.send("to be refused", client_id=client_id)
    for client_id in clients:
        parties.reply(client_id, seconds=2 * PATIENCE_SECONDS)


def test_impatient_clients_are_answered_once_while_functions_are_killed(parties: Parties, stage_folder: StageFolder):
    """A client gives up if it does not find its queue when it looks five times, once a second."""
    parties.expect_proxies(*Nat)
    dead_letters = parties.dead_letters()

    with _proxies_polling(parties) as rounds:
        exchanges = _exchange_while_killing(parties, stage_folder)
    wait_for(lambda: parties.waiting_messages() == 0, "all offers deleted", seconds=2 * PATIENCE_SECONDS)

    unanswered = [exchange.problem for exchange in exchanges if exchange.answer != exchange.right_answer]
    assert len(unanswered) <= UNLUCKY, unanswered
    assert "" not in unanswered, "a client got the answer to another offer"
    # Only a client without an answer may lack its queue.
    queued = [one for one in exchanges if one.answer == one.right_answer or parties.client_queue(one.client_id)]
    assert [parties.messages_for(exchange.client_id) for exchange in queued] == [1] * len(queued)
    assert parties.dead_letters() == dead_letters
    offered = {_offer(served) for served in rounds if served.accepted}
    assert offered <= {exchange.offer for exchange in exchanges}


@dataclass(frozen=True, slots=True)
class Exchanged:
    """The result of a client's offer: its answer, or its problem."""

    client_id: str
    offer: str
    answer: str = ""
    problem: str = ""

    @property
    def right_answer(self) -> str:
        return sample_answer(self.offer)


def _exchange(parties: Parties) -> Exchanged:
    client_id = new_client_id()
    offer = sample_offer(client_id)
    rendezvous = SqsRendezvous(parties.client_sqs, parties.deployment.outputs["BrokerQueueUrl"], sleep=time.sleep)
    try:
        received = rendezvous.exchange(offer_body(offer, Nat.RESTRICTED), client_id=client_id)
    except (BrokerRefused, NoAnswer, parties.client_sqs.exceptions.QueueDoesNotExist) as problem:
        return Exchanged(client_id, offer, problem=str(problem))
    return Exchanged(client_id, offer, answer=received.session_description)


def _replies(parties: Parties, asked: list[Asked], *, seconds: float = 2 * PATIENCE_SECONDS) -> dict[str, str]:
    waiting = {c.client_id: parties.pool.submit(parties.reply, c.client_id, seconds=seconds) for c in asked}
    return {client_id: reply.result() for client_id, reply in waiting.items()}


def _offer(served: ServeResult) -> str:
    return served.response.offer if served.response else ""


def _ids(asked: list[Asked]) -> list[str]:
    return [client.client_id for client in asked]


def _serve_one(parties: Parties) -> ServeResult:
    """Poll, as a proxy does, until there was a client."""
    deadline = Deadline(2 * PATIENCE_SECONDS)
    while not deadline.is_over():
        with suppress(BrokerUnreachableError):  # too slow; a real proxy polls again, too
            served = parties.proxy().serve_once()
            if served.accepted is not None:
                return served
    raise AssertionError("no client for this proxy")


@contextmanager
def _proxies_polling(parties: Parties) -> Iterator[list[ServeResult]]:
    """Run proxies that poll until the block ends; the list then has the results of all polls."""
    rounds: list[ServeResult] = []
    stopping = threading.Event()
    proxies = [parties.pool.submit(_poll_until, parties, stopping, rounds) for _ in range(PROXIES_OF_THE_BURST)]
    try:
        yield rounds
    finally:
        stopping.set()
        for proxy in proxies:
            proxy.result()


def _poll_until(parties: Parties, stopping: threading.Event, rounds: list[ServeResult]) -> None:
    while not stopping.is_set():
        with suppress(BrokerUnreachableError):  # the function was killed; a real proxy polls again, too
            rounds.append(parties.proxy().serve_once())


def _exchange_while_killing(parties: Parties, stage_folder: StageFolder) -> list[Exchanged]:
    """Start clients one after another until the last kill, and return their exchanges."""
    names = _function_names(parties)
    injector = FaultInjector(stage_folder, [names[function] for function in KILLED])
    killed = parties.pool.submit(injector.kill, KILLS, between=BETWEEN_KILLS)
    exchanges = [
        _start_and_pause(parties, seconds=sum(BETWEEN_KILLS) / 2 * KILLS / CLIENTS_OF_THE_BURST)
        for _ in range(CLIENTS_OF_THE_BURST)
    ]
    killed.result()
    return [exchange.result() for exchange in exchanges]


def _start_and_pause(parties: Parties, *, seconds: float) -> Future[Exchanged]:
    started = parties.pool.submit(_exchange, parties)
    time.sleep(seconds)
    return started


def _function_names(parties: Parties) -> dict[str, str]:
    functions = parties.deployment.session().client("lambda").list_functions()["Functions"]
    return {function["Handler"].split(".")[-2]: function["FunctionName"] for function in functions}
