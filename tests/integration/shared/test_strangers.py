"""Strangers without a key at everything that they share with others: these go on, and nothing stays behind."""

import json
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from websockets.exceptions import WebSocketException

from signalbox.clients.deployment import Deployment
from signalbox.clients.live.cursor import PatternCursor
from signalbox.clients.rendezvous.amp import amp_path
from signalbox.clients.rendezvous.simulator import sample_answer, sample_offer
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.proxy import ProxyAnswer, answer_body
from tests.integration.live.stage import ROLES, TrialRealm, connected, new_topic
from tests.integration.rendezvous.peers import PATIENCE_SECONDS, Parties
from tests.patience import SOON_SECONDS, wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

STRANGERS, ACTS, EVENTS = 6, 60, 20
JUNK = ["[" * 30_000, "[1]", "{}", "\u0000", '[16, 1, {}, "wamp.session.on_join", [1]]', "x" * 32_000, "[6, {}, 1]"]


def silence(_place: TrialRealm) -> list[str]:
    return []


def junk(_place: TrialRealm) -> list[str]:
    return [secrets.choice(JUNK) for _ in range(20)]


def wrong_secret(place: TrialRealm) -> list[str]:
    name, _ = place.users["subscriber"]
    hello = [1, place.realm, {"authid": name, "authmethods": ["ticket"], "roles": ROLES}]
    return [json.dumps(hello), json.dumps([5, "wrong", {}])]


def no_realm(_place: TrialRealm) -> list[str]:
    return [json.dumps([1, f"xs_{secrets.token_hex(9)}.fifo", {"roles": ROLES}])]


def besiege(place: TrialRealm, act: Callable[[TrialRealm], list[str]]) -> str:
    """Open a connection, send an act's frames, and read until the stage closes it."""
    try:
        with connected(place) as socket:
            for frame in act(place):
                socket.send(frame)
            while True:
                socket.recv(timeout=SOON_SECONDS)
    except (WebSocketException, OSError) as ended:
        return f"{act.__name__}: {type(ended).__name__}"


@contextmanager
def siege(act: Callable[[int], str], done: Counter[str]) -> Iterator[None]:
    """Repeat an act in several threads within the context."""
    over, numbers = threading.Event(), iter(range(1_000_000))

    def go_on() -> None:
        while not over.is_set():
            done.update([act(next(numbers))])

    with ThreadPoolExecutor(STRANGERS) as threads:
        running = [threads.submit(go_on) for _ in range(STRANGERS)]
        try:
            wait_for(lambda: done.total() >= STRANGERS, "a siege")
            yield
            wait_for(lambda: done.total() >= ACTS, "the siege", progress=done.total)
        finally:
            over.set()
        for one in running:
            one.result()


def connections(deployment: Deployment) -> set[str]:
    """Return the connections without a recorded end."""
    table = deployment.session().resource("dynamodb").Table(deployment.outputs["LiveTable"])
    pages = table.meta.client.get_paginator("scan").paginate(TableName=table.name, ProjectionExpression="pk, sk")
    items = [item for page in pages for item in page["Items"]]
    return {str(item["sk"]) for item in items if str(item["pk"]).startswith("opened#")}


def test_members_of_a_realm_go_on_while_strangers_connect(place: TrialRealm, deployment: Deployment, parties: Parties):
    acts, done, topic = (silence, junk, wrong_secret, no_realm), Counter[str](), new_topic()
    queues = [deployment.outputs[name] for name in ("LiveInboxUrl", "LiveOutboxUrl", "LiveOrderedDeadLetterQueueUrl")]
    before = connections(deployment)

    with place.client("subscriber") as subscriber, place.publisher() as publisher:
        subscriber.follow(PatternCursor(TopicPattern.parse(topic)))
        assert list(subscriber.backfill()) == []
        with siege(lambda number: besiege(place, acts[number % len(acts)]), done):
            for number in range(EVENTS):
                publisher.publish(topic, Payload((number,)))
                event = subscriber.receive(SOON_SECONDS)
                assert event is not None
                assert event.payload.arguments == (number,)

    wait_for(lambda: connections(deployment) <= before, "no connection of a stranger left")
    wait_for(lambda: not any(map(parties.messages_in, queues)), "empty queues")


def test_a_client_and_a_proxy_find_each_other_among_strangers(parties: Parties):
    parties.expect_proxies(*Nat)
    done = Counter[str]()

    def act(number: int) -> str:
        answer = answer_body(ProxyAnswer(f"nobody-{number}", sample_answer(sample_offer("nobody"))))
        requests = {
            "proxy": ("POST", "proxy", "[" * 1_000),
            "answer": ("POST", "answer", answer),
            "client": ("POST", "client", "1.0\n{}"),
            "amp": ("GET", amp_path("1.0\n{}"), ""),
            "prometheus": ("GET", "prometheus", ""),
            "metrics": ("GET", "metrics", ""),
        }
        what = ("silent proxy", *requests)[number % (1 + len(requests))]
        if what not in requests:
            parties.proxy(is_silent=True).serve_once()
            return what
        return f"{what} {parties.http(*requests[what]).status}"

    with siege(act, done):
        client = parties.ask(Nat.UNRESTRICTED)
        wait_for(lambda: parties.proxy().serve_once().accepted, "an answer", seconds=PATIENCE_SECONDS)
        assert parties.reply(client.client_id) == client.answer
