"""The router of live exchanges, which does not affect other exchanges."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from signalbox.errors import UnavailableError
from signalbox.exchange.messages.properties import LIVE, MessageProperties
from signalbox.exchange.messages.publications import Publication
from signalbox.exchange.model.records import ExchangeRecord, LiveSettings, OrderBy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.ports import Delivery, Distribution, HeadChange, NumberedPublication
from signalbox.exchange.routing.sequences import Head
from signalbox.history.event import HistoryEvent
from signalbox.messages import Attribute, MessageId
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName
from tests.unit.exchange.routing.naive_sqs import VISIBILITY
from tests.unit.exchange.routing.routing_world import (
    CONTROL_ID,
    NAMES,
    ORDERED_RETRIES,
    SESSION_ID,
    MemoryHeads,
    MemoryKeyHolds,
    World,
)

LOG = "xlog.fifo"


@dataclass
class Sent:
    """A `SentCopy`."""

    message_id: MessageId
    destination: str
    attempt: int


@dataclass
class Live:
    """A `LiveDelivery` that records its calls and fails as configured."""

    world: World | None = None  # without one, nothing is stored with the log
    holds: MemoryKeyHolds = field(default_factory=MemoryKeyHolds)
    cannot_write: bool = False
    """Whether a transaction fails, so that heads are stored before the logs."""
    at_once: list[str] = field(default_factory=list)
    failing: set[str] = field(default_factory=set)
    refusing: set[str] = field(default_factory=set)
    unacknowledged: set[str] = field(default_factory=set)
    delivered: list[tuple[str, int]] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    notes: list[str | None] = field(default_factory=list)
    headers: list[dict[str, str | None]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    def refused(self, exchange: ExchangeRecord, publications: Sequence[Publication]) -> Mapping[MessageId, str]:
        return {one.message.message_id: "too much" for one in publications if one.message.body in self.refusing}

    def store_with(
        self, exchange: ExchangeRecord, published: Sequence[NumberedPublication], heads: Sequence[HeadChange]
    ) -> Delivery | None:
        assert self.world is not None
        if self.cannot_write:
            return None
        stored = self.world.heads.read(exchange.name, [one.key for one in heads])
        if any(stored.get(one.key, Head()).sequence != one.replacing.sequence for one in heads):
            return None
        holds = [(one.key, one.hold) for one in heads if one.hold is not None]
        if not all(self.holds.can_replace(exchange.name, key, hold) for key, hold in holds):
            return None
        for one in heads:
            assert self.world.heads.save(exchange.name, one)
            self.at_once.append(one.key)
        return self.store(exchange, published)

    def store(self, exchange: ExchangeRecord, published: Sequence[NumberedPublication]) -> Delivery:
        assert exchange.live is not None
        return lambda: Distribution(
            self.deliver(published), [Sent(one.publication.message.message_id, "c", 1) for one in published]
        )

    def deliver(self, published: Sequence[NumberedPublication]) -> Collection[MessageId]:
        self.steps.append("delivered")
        self.delivered += [(one.publication.message.body, one.sequence) for one in published]
        self.notes += [one.publication.notes for one in published]
        publications = [one.publication for one in published]
        self.headers += [{name: one.text for name, one in said.properties.headers.items()} for said in publications]
        return {one.message.message_id for one in publications if one.message.body in self.failing}

    def metadata_problem(self, publication: Publication) -> str | None:
        return "live: wrong" if publication.notes == "wrong" else None

    def publication_id(self, publication: Publication) -> int:
        return len(publication.message.message_id)

    def acknowledge(self, publications: Sequence[Publication]) -> Collection[MessageId]:
        self.steps.append("acknowledged")
        self.acknowledged += [one.message.body for one in publications]
        return {one.message.message_id for one in publications if one.message.body in self.unacknowledged}


def live_world(order_by: OrderBy = OrderBy.TOPIC) -> tuple[World, Live]:
    world = World()
    live = Live(world)
    world.declare(LOG)
    name = ExchangeName(LOG)
    world.table.exchanges[name] = replace(world.table.exchanges[name], live=LiveSettings(order_by))
    world.use(live=live)
    return world, live


@pytest.fixture
def world_and_live() -> tuple[World, Live]:
    return live_world()


def test_live_delivery_gets_numbers_and_publishers_are_acknowledged_last(world_and_live) -> None:
    world, live = world_and_live
    world.bind(LOG, "#", queue="q_log.fifo")
    for number in range(3):
        world.publish(LOG, "a.b", str(number))

    assert world.route(LOG).not_done == ()

    assert live.delivered == [("0", 1), ("1", 2), ("2", 3)]
    assert (live.acknowledged, world.bodies("q_log.fifo")) == (["0", "1", "2"], ["0", "1", "2"])


@pytest.mark.parametrize("copies", [0, 1])
def test_publishers_are_acknowledged_after_all_deliveries(world_and_live, copies) -> None:
    """A publisher that waits is in order across topics: its event is in all outboxes when it publishes the next one."""
    world, live = world_and_live
    for number in range(copies):
        world.bind(LOG, "#", queue=f"q_log{number}.fifo")
    world.publish(LOG, "a.b")

    world.route(LOG)

    assert live.steps == ["delivered", "acknowledged"]


def test_a_refused_publication_is_a_dead_letter_and_no_other_waits_behind_it(world_and_live) -> None:
    world, live = world_and_live
    world.bind(LOG, "#", queue="q_log.fifo")
    for topic, body in (("a.b", "0"), ("a.b", "1"), ("c", "2"), ("a.b", "3")):
        world.publish(LOG, topic, body)
    live.refusing = {"1"}

    assert world.route(LOG).not_done == ()

    assert (live.delivered, world.bodies("q_log.fifo")) == ([("0", 1), ("2", 1), ("3", 2)], ["0", "2", "3"])
    (dead,) = world.messages("xlog-dlq.fifo")
    assert (dead.body, dead.attributes["Reason"].text) == ("1", "too much")


def test_a_publication_with_a_number_is_not_refused(world_and_live) -> None:
    """It is in the log, and others may wait for it."""
    world, live = world_and_live
    world.publish(LOG, "a.b", "0")
    live.failing = {"0"}
    assert world.route(LOG).not_done
    live.failing, live.refusing = set(), {"0"}
    world.moment += VISIBILITY

    assert world.route(LOG).not_done == ()


def test_live_delivery_ignores_exchanges_that_are_not_live() -> None:
    world, live = live_world()
    world.declare("xother.fifo")
    world.publish("xother.fifo", "a.b")

    world.route("xother.fifo")

    assert (live.delivered, live.acknowledged) == ([], [])


@pytest.mark.parametrize("alternate", [None, "xalternate"])
def test_a_logged_message_without_bindings_is_not_dropped(world_and_live, alternate: str | None) -> None:
    world, _ = world_and_live
    world.declare("xalternate")
    world.table.set_alternate(LOG, alternate)
    world.publish(LOG, "a.b")

    routed = world.route(LOG)

    (event,) = routed.events
    assert (event.kind, event.outcome, event.topic, event.sequence) == ("logged", "live", "a.b", 1)
    assert event.labels["publication"] == str(len(event.message_id))
    assert world.counters.of_exchange(LOG) == {"received": 1, "bytes": 18}


def test_a_failed_live_delivery_redelivers_the_message_and_its_group(world_and_live) -> None:
    world, live = world_and_live
    world.bind(LOG, "#", queue="q_log.fifo")
    for key, body in (("a", "1"), ("a", "2"), ("b", "3")):
        world.publish(LOG, key, body)
    live.failing = {"2"}

    world.route(LOG)
    assert (live.acknowledged, world.bodies("q_log.fifo")) == (["3"], ["3"])
    live.failing = set()
    world.moment += VISIBILITY + 1
    world.route(LOG)

    assert live.delivered == [("1", 1), ("2", 2), ("3", 1), ("1", 1), ("2", 2)]
    assert world.bodies("q_log.fifo") == ["3", "1", "2"]


@pytest.mark.parametrize("has_copies", [True, False])
def test_what_connections_have_got_of_unfinished_messages_is_recorded(world_and_live, has_copies) -> None:
    world, live = world_and_live
    if has_copies:
        world.bind(LOG, "#", queue="q_log.fifo")
        world.sqs.trouble = {NAMES.queue("q_log.fifo"): "closed", ORDERED_RETRIES: "closed"}
    live.unacknowledged = set() if has_copies else {"1"}
    for key, body in (("a", "1"), ("b", "2")):
        world.publish(LOG, key, body)

    left = world.route(LOG).not_done

    assert len(left) == (2 if has_copies else 1)
    assert world.sent.copies == {(message_id, "c") for message_id in left}


def test_a_publication_without_copies_is_recorded_while_it_is_delivered(world_and_live) -> None:
    """It is in the log then: the history need not wait for its connections, nor they for the history."""
    world, live = world_and_live
    for key, body in (("a", "1"), ("a", "2"), ("b", "3")):
        world.publish(LOG, key, body)
    live.failing = {"1"}

    first = world.route(LOG)
    live.failing = set()
    world.moment += VISIBILITY + 1
    again = world.route(LOG)

    assert live.delivered == [("1", 1), ("2", 2), ("3", 1), ("1", 1), ("2", 2)]
    assert live.acknowledged == ["3", "1", "2"]
    assert (len(first.not_done), again.not_done) == (2, ())
    assert [event.outcome for event in first.events] == ["live"] * 3
    assert {event.event_id for event in again.events} < {event.event_id for event in first.events}


def test_a_failed_acknowledgement_redelivers_the_message_and_all_behind_it(world_and_live) -> None:
    world, live = world_and_live
    for key, body in (("a", "1"), ("a", "2"), ("b", "3")):
        world.publish(LOG, key, body)
    live.unacknowledged = {"1"}

    routed = world.route(LOG)

    assert len(routed.not_done) == 2


def test_nothing_overtakes_what_has_no_number(world_and_live, monkeypatch) -> None:
    world, live = live_world(OrderBy.EXCHANGE)
    live.cannot_write = True
    queue = world.sqs.queues[QueueName(LOG)]
    for key, body in (("a", "1"), ("b", "2"), ("c", "3")):
        properties = MessageProperties.of_publication(key, body)
        queue.send(properties.published(deduplication_id=body, order_by=OrderBy.EXCHANGE))
    save = MemoryHeads.save

    def saved(heads: MemoryHeads, exchange: ExchangeName, change: HeadChange) -> bool:
        return change.key != "b" and save(heads, exchange, change)

    monkeypatch.setattr(MemoryHeads, "save", saved)

    routed = world.route(LOG)

    assert (live.delivered, len(routed.not_done)) == ([("1", 1)], 2)


def test_live_metadata_is_accepted_from_sessions_only(world_and_live) -> None:
    world, live = world_and_live
    queue = world.sqs.queues[QueueName(LOG)]
    for number, sender in enumerate((f"{SESSION_ID}:session", f"{CONTROL_ID}:session", "AIDAEVE")):
        message = MessageProperties.of_publication("a", str(number)).published(deduplication_id=str(number))
        noted = replace(message, attributes={**message.attributes, LIVE: Attribute("String", "{}")})
        queue.send(noted, sender=sender)

    world.route(LOG)

    assert live.notes == ["{}", None, None]


def test_topics_of_sessions_are_accepted_from_sessions_only(world_and_live) -> None:
    world, live = world_and_live
    world.bind(LOG, "#", queue="q_log.fifo")
    for number, sender in enumerate((f"{SESSION_ID}:session", f"{CONTROL_ID}:session", "AIDAEVE")):
        world.publish(LOG, "wamp.session.on_join", str(number), sender=sender)

    routed = world.route(LOG)

    assert (live.delivered, world.bodies("q_log.fifo"), list(routed.not_done)) == ([("0", 1)], ["0"], [])
    assert world.bodies("xlog-dlq.fifo") == ["1", "2"]


def test_wrong_metadata_is_a_rejection_and_blocks_no_other_message(world_and_live) -> None:
    world, live = world_and_live
    world.bind(LOG, "#", queue="q_log.fifo")
    for number, note in enumerate(("wrong", "{}")):
        message = MessageProperties.of_publication("a", str(number)).published(deduplication_id=str(number))
        noted = replace(message, attributes={**message.attributes, LIVE: Attribute("String", note)})
        world.sqs.queues[QueueName(LOG)].send(noted, sender=SESSION_ID)

    routed = world.route(LOG)

    assert (live.delivered, list(routed.not_done)) == ([("1", 1)], [])
    assert [event.reason for event in routed.events if event.outcome == "dead"] == ["live: wrong"]


def test_a_header_called_live_in_a_command_is_a_header(world_and_live) -> None:
    world, live = world_and_live
    world.bind(LOG, "#", queue="q_log.fifo")
    published = MessageProperties.of_publication("a", "1", {LIVE: "yes"})
    message = published.published(publisher="alice", deduplication_id="1")
    world.sqs.queues[QueueName(LOG)].send(message, sender=CONTROL_ID)

    world.route(LOG)

    assert live.notes == [None]
    assert live.headers == [{LIVE: "yes"}]


def test_a_message_outside_the_exchanges_group_is_dead_lettered(world_and_live) -> None:
    world, live = live_world(OrderBy.EXCHANGE)
    world.publish(LOG, "a.b")

    (event,) = world.route(LOG).events

    assert (live.delivered, event.outcome) == ([], "dead")
    assert "expected 'exchange'" in str(event.reason)


@pytest.mark.parametrize("cannot_write", [False, True])
def test_numbers_are_the_same_whether_they_are_stored_with_the_log_or_before_it(cannot_write: bool) -> None:  # noqa: FBT001
    world, live = live_world()
    live.cannot_write = cannot_write
    for key, body in (("a", "1"), ("b", "2"), ("a", "3")):
        world.publish(LOG, key, body)

    assert world.route(LOG).not_done == ()

    assert live.delivered == [("1", 1), ("2", 1), ("3", 2)]
    assert live.at_once == ([] if cannot_write else ["a", "b"])
    assert world.counters.of_exchange(LOG) == {"received": 3, "bytes": world.counters.of_exchange(LOG)["bytes"]}


def test_messages_that_are_received_again_keep_their_numbers_and_store_no_head(world_and_live) -> None:
    world, live = world_and_live
    world.publish(LOG, "a", "1")
    live.failing = {"1"}
    world.route(LOG)
    live.failing, live.at_once = set(), []
    world.moment += VISIBILITY + 1

    assert world.route(LOG).not_done == ()

    assert (live.delivered, live.at_once) == ([("1", 1), ("1", 1)], [])
    counts = world.counters.of_exchange(LOG)
    assert (counts["received"], counts["redelivered"]) == (2, 1)


def test_the_head_of_a_key_with_a_detour_is_stored_alone(world_and_live) -> None:
    """The function that retries copies ends the detour at the same time; a transaction would make that fail."""
    world, live = world_and_live
    world.heads.start_detour(ExchangeName(LOG), RoutingKey("a"), QueueName("q_log.fifo"), last=3)
    world.publish(LOG, "a", "1")

    assert world.route(LOG).not_done == ()

    assert (live.delivered, live.at_once) == ([("1", 1)], [])


def test_history_is_written_after_the_acknowledgement(world_and_live) -> None:
    world, live = world_and_live
    written: list[tuple[int, list[str]]] = []
    world.use(record=lambda events: written.append((len(events), list(live.acknowledged))))
    world.publish(LOG, "a", "1")

    assert world.route(LOG).events == ()

    assert written == [(1, ["1"])]


def test_a_batch_whose_history_is_not_written_is_received_again(world_and_live) -> None:
    """Every event of the history is written at least once, with the same id."""
    world, live = world_and_live
    written: list[HistoryEvent] = []
    outages = iter([True, False])

    def record(events: Sequence[HistoryEvent]) -> None:
        written.extend(events)
        if next(outages):
            raise UnavailableError("no answer")

    world.use(record=record)
    world.publish(LOG, "a", "1")

    with pytest.raises(UnavailableError):
        world.route(LOG)
    world.moment += VISIBILITY + 1
    assert world.route(LOG).not_done == ()

    assert len(written) == 2
    assert len({one.event_id for one in written}) == 1
    assert (live.delivered, live.acknowledged) == ([("1", 1), ("1", 1)], ["1", "1"])
