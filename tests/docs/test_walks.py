"""A reader who follows one message reads each file once, in the order of docs/architecture.md."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from signalbox.exchange.model.records import OrderBy
from signalbox.live.session.inbox import frame_body
from tests.docs.architecture import PAGE
from tests.docs.walks import Walk, walk
from tests.fakes.live import MemoryLive
from tests.unit.exchange.routing.routing_world import World as ExchangeWorld
from tests.unit.exchange.routing.test_router_live import LOG, live_world
from tests.unit.live.outbox.test_writer import World as OutboxWorld
from tests.unit.live.outbox.test_writer import event, event_batch, published
from tests.unit.live.session.conversation import Client
from tests.unit.rendezvous.rules.services import World as RendezvousWorld
from tests.unit.rendezvous.rules.services import delivery, proxy
from tests.unit.splitting.forwarding.test_splitter import SplitterStage, message, session


def split_message() -> Walk:
    stage = SplitterStage(session("ann", "red"))
    with walk("signalbox/splitting/forwarding/") as walked:
        stage.forward(message("1", "red"))
    return walked


def routed(world: ExchangeWorld, exchange: str, queue: str) -> Walk:
    world.bind(exchange, "#", queue=queue)
    world.publish(exchange, "a.b")
    with walk("signalbox/exchange/routing/", "signalbox/exchange/matching/") as walked:
        world.route(exchange)
    assert len(world.messages(queue)) == 1
    return walked


def publication(exchange: str, queue: str) -> Walk:
    world = ExchangeWorld()
    world.declare(exchange)
    return routed(world, exchange, queue)


def live_publication(order_by: OrderBy) -> Walk:
    world, live = live_world(order_by)
    walked = routed(world, LOG, "q_log.fifo")
    assert live.acknowledged == ["body"]
    return walked


def frame() -> Walk:
    client, said = Client(MemoryLive()).open().join(), frame_body(json.dumps([32, 1, {}, "trial.a"]))
    with walk("signalbox/live/session/") as walked:
        client.receive(said)
    return walked


def live_event() -> Walk:
    world, items = OutboxWorld(), (published(), event_batch(event(1)))
    with walk("signalbox/live/outbox/") as walked:
        world.deliver(*items)
    assert len(world.posted()) == 2
    return walked


def rendezvous() -> Walk:
    world = RendezvousWorld()
    world.expect_proxies()
    with walk("signalbox/rendezvous/rules/") as walked:
        world.receive(delivery())
        world.poll(proxy())
        assert world.answer(proxy())
    return walked


@dataclass(frozen=True)
class Life:
    """A section of the page, and a walk through it."""

    heading: str
    walk: Callable[[], Walk]


LIVES = {
    "split message": Life("The life of a split", split_message),
    "publication": Life("The life of a message on an exchange", lambda: publication("xpublic", "q_all")),
    "ordered publication": Life("The life of a message on an exchange", lambda: publication("xlog.fifo", "q_log.fifo")),
    "live by topic": Life("The life of a message on an exchange", lambda: live_publication(OrderBy.TOPIC)),
    "live by publisher": Life("The life of a message on an exchange", lambda: live_publication(OrderBy.PUBLISHER)),
    "frame": Life("The life of a connection", frame),
    "live event": Life("The life of a connection", live_event),
    "rendezvous": Life("The life of a rendezvous", rendezvous),
}


@pytest.fixture(params=LIVES.values(), ids=LIVES)
def life(request: pytest.FixtureRequest) -> Life:
    return request.param


def test_a_reader_who_follows_a_message_reads_each_file_once(life: Life):
    walked = life.walk()

    assert len(walked.files) > 2
    assert walked.turns == []


def test_the_page_names_the_files_in_the_order_of_the_walk(life: Life):
    files = life.walk().files

    named = [name for name in named_files(life.heading) if name in files]

    assert len(named) > 2
    assert named == sorted(named, key=files.index)


def test_a_walk_turns_back_where_a_file_is_needed_again():
    walked = Walk(("signalbox/",), files=["signalbox/a.py", "signalbox/b.py"])
    reading, sending = ("signalbox/a.py", "read"), ("signalbox/a.py", "send")
    walked._entered_again += [reading, sending]
    walked._calls[sending].append(("signalbox/a.py", "_send"))
    walked._calls["signalbox/a.py", "_send"].append(("signalbox/c.py", "post"))
    walked._opening.add(("signalbox/c.py", "post"))

    assert walked.turns == ["signalbox/a.py send"]


def named_files(heading: str) -> list[str]:
    """Return the files that a section of the page names; one without a folder is in the folder named last."""
    section = PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    named, folder = [], ""
    for name in re.findall(r"`([\w/]+\.py)`", section):
        folder = name.rpartition("/")[0] or folder
        named.append(f"{folder}/{name.rpartition('/')[2]}")
    return list(dict.fromkeys(named))
