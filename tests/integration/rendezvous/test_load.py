"""Concurrent clients: every client gets exactly one reply, its own."""

from collections import Counter
from contextlib import suppress

import pytest

from signalbox.clients.rendezvous.client import new_client_id
from signalbox.clients.rendezvous.simulator import BrokerUnreachableError, ServeResult, sample_answer, sample_offer
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body
from signalbox.rendezvous.wire.proxy import ProxyAnswer, answer_body
from tests.integration.rendezvous.peers import PATIENCE_SECONDS, Asked, Parties
from tests.patience import Deadline, wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

# Each takes two processes of this machine, in addition to those of the offers: more would measure the machine.
AT_ONCE = 24
LAST = 4  # they may take longer, since their function instances start first


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
    # On a busy machine a send may take until its offer is delivered again, which sends the same reply.
    counts = Counter(parties.messages_for(client.client_id) for client in asked)
    assert set(counts) <= {1, 2}
    assert counts[2] <= AT_ONCE // 4
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


def _replies(parties: Parties, asked: list[Asked], *, seconds: float = 2 * PATIENCE_SECONDS) -> dict[str, str]:
    waiting = {c.client_id: parties.pool.submit(parties.reply, c.client_id, seconds=seconds) for c in asked}
    return {client_id: reply.result() for client_id, reply in waiting.items()}


def _offer(served: ServeResult) -> str:
    return served.response.offer


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
