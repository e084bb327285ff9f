"""Forwarding by the record: who gets what, what comes again, which sessions end, and what is written down of it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from signalbox.errors import EffectFailed
from signalbox.messages import Message
from signalbox.queues import QueueName
from signalbox.sending import Batch
from signalbox.splitting.forwarding.matching import SessionId
from signalbox.splitting.forwarding.splitter import RECORD_AGE, Forwarded, Splitter, SplitUnknown
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.split import Phase, Session, Split, SplitQueue, Stage, alive, ended
from signalbox.splitting.model.target import Target
from tests.fakes.splitting import (
    START,
    MemoryDeadLetters,
    MemoryQueue,
    MemoryQueueSender,
    MemorySplitQueues,
    MemoryStore,
    MemoryTime,
)
from tests.unit.splitting.forwarding.languages import SLOW, PlainLanguages

STANDARD, FIFO = QueueName("memes"), QueueName("orders.fifo")
TARGET = Target.parse("lambda/meme-app")
SETTLE = timedelta(seconds=22)
LONG_AGO = START - timedelta(hours=1)


def session(name: str, color: str, *, mode: str = "steal", **changes: Any) -> Session:
    entry = {"queue_type": "SQS", "queue_mode": mode, "message_filter": {"color": color}}
    found = Session(
        session_id=SessionId(name),
        owner="owner",
        config=json.dumps({"feature": {"split_queues": {"*": entry}}}),
        started_at=LONG_AGO,
        heartbeat_at=LONG_AGO,
        phase=Phase.READY,
        since=LONG_AGO,
        queues={original: QueueName(f"{name}-{original}") for original in (STANDARD, FIFO)},
        stolen=frozenset({STANDARD, FIFO}) if mode == "steal" else frozenset(),
        effective_at=LONG_AGO,
    )
    return replace(found, **changes)


def message(
    body: str, color: str = "", *, group: str | None = None, received_at: datetime | None = START, attempt: int = 1
) -> Message:
    told = {"ApproximateReceiveCount": str(attempt), "SentTimestamp": str(milliseconds(START))}
    if received_at is not None:
        told["ApproximateFirstReceiveTimestamp"] = str(milliseconds(received_at))
    if group is not None:
        told |= {"MessageGroupId": group, "MessageDeduplicationId": f"d-{body}"}
    document: dict[str, object] = {
        "MessageId": f"id-{body}",
        "ReceiptHandle": f"handle-{body}",
        "Body": body,
        "Attributes": told,
    }
    if color:
        document["MessageAttributes"] = {"color": {"DataType": "String", "StringValue": color}}
    return Message.parse(document)


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


class CountingLanguages(PlainLanguages):
    """Counts what it compiles; a pattern `slow` takes its second, and says so."""

    def __init__(self) -> None:
        self.compiled: list[str] = []

    def pattern(self, text: str, *, case_sensitive: bool):
        self.compiled.append(text)
        return super().pattern(text, case_sensitive=case_sensitive)


class UncertainSender(MemoryQueueSender):
    """A sender whose calls to `uncertain` queues get no response."""

    uncertain: frozenset[str] = frozenset()

    def send(self, batch: Batch):
        if batch.destination in self.uncertain:
            raise EffectFailed("no answer")
        return super().send(batch)


class UnavailableDeadLetters(MemoryDeadLetters):
    """A dead-letter queue that takes nothing while `is_closed`."""

    is_closed = False

    def dead_letter(self, message: Message, *, reason: str, attributes: Mapping[str, str] | None = None) -> None:
        if self.is_closed:
            raise EffectFailed("not now")
        super().dead_letter(message, reason=reason, attributes=attributes)


class World:
    """A split in memory and what forwards its messages; each look at the clock takes `step`."""

    def __init__(self, *sessions: Session) -> None:
        self.store, self.time, self.sender = MemoryStore(), MemoryTime(), UncertainSender()
        self.dead_letters = UnavailableDeadLetters()
        self.queues = MemorySplitQueues(queues={name: MemoryQueue() for name in (STANDARD, FIFO)})
        self.languages = CountingLanguages()
        self.step = timedelta(0)
        self.splitter = Splitter(
            splits=self.store.splits,
            ledger=self.store.ledger,
            sender=self.sender,
            dead_letters=self.dead_letters,
            queues=self.queues,
            compiler=self.languages,
            now=self.now,
            settle=SETTLE,
            budget=timedelta(seconds=10),
        )
        queues = tuple(
            SplitQueue(QueueId(name), name, QueueName(f"deployed-{name}"), timedelta(seconds=30))
            for name in (STANDARD, FIFO)
        )
        split = Split(TARGET, queues, sessions, Stage.SPLIT, LONG_AGO, timedelta(seconds=120), was_split=True)
        assert self.store.splits.create(split, documents=[])

    def now(self) -> datetime:
        self.time.moment += self.step
        return self.time.moment

    @property
    def split(self) -> Split:
        stored = self.store.splits.find(TARGET)
        assert stored is not None
        return stored.split

    def change(self, split: Split) -> None:
        stored = self.store.splits.find(TARGET)
        assert stored is not None
        assert self.store.splits.save(split, replacing=stored)

    def forward(self, *messages: Message, original: QueueName = STANDARD) -> Forwarded:
        return self.splitter.forward(messages, original, call_id="call")

    def sent(self) -> Mapping[str, list[str]]:
        return {name: self.sender.bodies(name) for name in self.sender.sent}

    def session(self, name: str) -> Session:
        found = self.split.session(SessionId(name))
        assert found is not None
        return found


@pytest.fixture
def closing() -> World:
    """A world in which ann's session ends, so that the forwarding of the FIFO queue is about to pause."""
    return World(session("ann", "red", phase=Phase.ENDING, since=START), session("bob", "blue"))


def happened(forwarded: Forwarded) -> list[tuple[str, str, str | None, str | None]]:
    return [(one.kind, one.outcome, one.message_id, one.destination) for one in forwarded.events]


def test_each_message_goes_where_it_belongs_in_one_call_for_each_queue():
    world = World(session("ann", "red"), session("bob", "red|blue"))

    done = world.forward(message("1", "red"), message("2", "blue"), message("3"), message("4", "red"))

    assert done.not_done == ()
    assert world.sent() == {"ann-memes": ["1", "4"], "bob-memes": ["2"], "deployed-memes": ["3"]}
    assert len(world.sender.calls) == 3


def test_a_session_that_mirrors_gets_copies_and_the_deployed_consumer_its_messages():
    world = World(session("ann", "red", mode="mirror"))

    done = world.forward(message("1", "red"))

    assert world.sent() == {"deployed-memes": ["1"], "ann-memes": ["1"]}
    assert happened(done) == [
        ("routed", "deployed", "id-1", "deployed-memes"),
        ("routed", "copied", "id-1", "ann-memes"),
    ]


def test_nothing_is_sent_of_a_queue_that_no_split_has():
    world = World()

    with pytest.raises(SplitUnknown, match="'other' belongs to no split"):
        world.forward(message("1"), original=QueueName("other"))


def test_nothing_is_sent_of_a_queue_that_its_split_does_not_know():
    world = World()
    world.change(replace(world.split, queues=world.split.queues[:1]))

    with pytest.raises(SplitUnknown):
        world.forward(message("1", group="g"), original=FIFO)


def test_a_record_is_used_for_two_seconds_and_no_longer():
    world = World()
    world.forward(message("1", "red"))
    world.change(replace(world.split, sessions=(session("ann", "red"),)))

    world.time.moment += RECORD_AGE - timedelta(milliseconds=1)
    world.forward(message("2", "red"))
    world.time.moment += timedelta(milliseconds=1)
    world.forward(message("3", "red"))

    assert world.sent() == {"deployed-memes": ["1", "2"], "ann-memes": ["3"]}


def test_filters_are_compiled_once_however_often_a_heartbeat_changes_the_record():
    world = World(session("ann", "red"))

    for _ in range(3):
        world.forward(message("1", "red"))
        world.change(alive(world.split, SessionId("ann"), now=world.time.moment))
        world.time.moment += RECORD_AGE

    assert world.languages.compiled == ["red"]


def test_what_was_not_taken_comes_again():
    world = World(session("ann", "red"))
    world.sender.failing = {QueueName("ann-memes")}

    done = world.forward(message("1", "red"), message("2"))

    assert done.not_done == ("id-1",)
    assert happened(done) == [("routed", "deployed", "id-2", "deployed-memes")]


def test_behind_a_message_that_was_not_taken_its_group_waits():
    world = World(session("ann", "red"))
    world.sender.failing = {QueueName("ann-orders.fifo")}

    done = world.forward(
        message("1", group="a"),
        message("2", "red", group="a"),
        message("3", group="a"),
        message("4", group="b"),
        original=FIFO,
    )

    assert done.not_done == ("id-2", "id-3")
    assert world.sent() == {"deployed-orders.fifo": ["1", "4"]}


def test_a_message_that_every_queue_rejects_is_dead_lettered_and_holds_up_nothing():
    world = World()
    world.sender.refused_bodies = {"bad": "InvalidMessageContents"}

    bad = message("bad", group="a")
    done = world.forward(bad, message("2", group="a"), original=FIFO)

    assert done.not_done == ()
    assert world.dead_letters.messages == [(bad, FIFO, "InvalidMessageContents")]
    assert [(one.kind, one.outcome, one.reason) for one in done.events] == [
        ("dead_letter", "dead", "InvalidMessageContents"),
        ("routed", "deployed", None),
    ]


def test_a_message_that_cannot_be_dead_lettered_is_received_again():
    world = World()
    world.sender.refused_bodies = {"bad": "InvalidMessageContents"}
    world.dead_letters.is_closed = True

    done = world.forward(message("bad"))

    assert (done.not_done, done.events) == (("id-bad",), ())


def test_a_rejected_copy_is_not_dead_lettered_since_its_owner_has_the_message():
    world = World(session("ann", "red", mode="mirror"), session("bob", "red", mode="mirror"))
    world.sender.refusing = {QueueName("ann-memes"): "InvalidParameterValue"}

    done = world.forward(message("1", "red"))

    assert (done.not_done, world.dead_letters.messages) == ((), [])
    assert [(one.outcome, one.destination) for one in done.events] == [
        ("deployed", "deployed-memes"),
        ("copied", "bob-memes"),
    ]


class TestSlowFilters:
    def test_a_filter_that_is_too_slow_ends_its_session_with_the_reason_and_the_batch_goes_on(self):
        world = World(session("ann", SLOW), session("bob", "blue"))

        done = world.forward(message("1", "blue"), message("2", "green"))

        assert (done.not_done, done.cancelled) == ((), ("ann",))
        assert world.sent() == {"bob-memes": ["1"], "deployed-memes": ["2"]}
        assert world.session("ann").phase is Phase.ENDING
        assert world.session("ann").reason == "filter too slow: pattern 'slow' took longer than 1 s"
        assert world.session("bob").phase is Phase.READY

    def test_the_next_batch_is_forwarded_by_the_new_record_at_once(self):
        world = World(session("ann", SLOW))
        world.forward(message("1", "blue"))

        done = world.forward(message("2", "blue"))

        assert done.cancelled == ()
        assert world.sent() == {"deployed-memes": ["1", "2"]}

    def test_in_a_fifo_queue_each_message_is_asked_about_since_it_may_have_been_sent_before(self):
        asked = []

        class Slow(CountingLanguages):
            def pattern(self, text: str, *, case_sensitive: bool):
                found = super().pattern(text, case_sensitive=case_sensitive)
                return CountedPattern(found, asked)

        world = World(session("ann", SLOW))
        world.splitter.compiler = Slow()

        world.forward(message("1", "a", group="g"), message("2", "b", group="g"), original=FIFO)

        assert asked == ["a", "b"]

    def test_in_a_fifo_queue_nothing_is_asked_about_what_came_after_all_know(self):
        ended_at = START - SETTLE
        ann = session("ann", SLOW, phase=Phase.ENDING, since=ended_at, reason="filter too slow: pattern")
        world = World(ann, session("bob", "blue"))

        before = message("1", "x", group="g", received_at=START - timedelta(milliseconds=1))
        done = world.forward(before, original=FIFO)
        after = world.forward(message("2", "x", group="g"), original=FIFO)

        assert [verdict.attempt for verdict in done.events] == [1]
        assert (done.cancelled, after.cancelled) == ((), ())
        assert sorted(world.languages.compiled) == ["blue", "slow"]
        assert world.sent() == {"deployed-orders.fifo": ["1", "2"]}

    def test_a_batch_for_which_there_is_no_time_comes_again_from_where_it_was_left(self):
        world = World(session("ann", "red"))
        world.step = timedelta(seconds=6)

        done = world.forward(*(message(str(number)) for number in range(5)))

        assert done.not_done == ("id-2", "id-3", "id-4")
        assert world.sent() == {"deployed-memes": ["0", "1"]}

    def test_one_message_at_least_is_decided_on(self):
        world = World()
        world.step = timedelta(seconds=60)

        assert world.forward(message("1"), message("2")).not_done == ("id-2",)

    def test_it_ends_although_others_write_the_record_at_the_same_moment(self):
        world = World(session("ann", SLOW))
        save, others = world.store.splits.save, iter(range(3))

        def contested(split, *, replacing):
            if next(others, None) is not None:
                save(alive(world.split, SessionId("ann"), now=START), replacing=replacing)
            return save(split, replacing=replacing)

        world.splitter.splits = Contested(world.store.splits, contested)

        assert world.forward(message("1", "x")).cancelled == ("ann",)

    def test_when_others_always_come_first_the_next_batch_tries_again(self):
        world = World(session("ann", SLOW))
        world.splitter.splits = Contested(world.store.splits, lambda split, *, replacing: None)

        done = world.forward(message("1", "x"))

        assert (done.cancelled, done.not_done) == ((), ())
        assert world.session("ann").phase is Phase.READY

    def test_a_session_that_somebody_ended_meanwhile_keeps_its_reason(self):
        world = World(session("ann", SLOW))
        world.forward(message("1"))
        world.change(ended(world.split, SessionId("ann"), reason="stopped", now=START))

        assert world.forward(message("2", "x")).cancelled == ()
        assert world.session("ann").reason == "stopped"

    def test_a_split_that_ended_meanwhile_is_left_alone(self):
        world = World(session("ann", SLOW))
        world.forward(message("1"))
        stored = world.store.splits.find(TARGET)
        assert stored is not None
        world.store.splits.forget(stored)

        assert world.forward(message("2", "x")).cancelled == ()


class TestUnreadableFilters:
    @pytest.mark.parametrize(
        ("config", "reason"),
        [
            ("{", "filters cannot be read: the text is not JSON"),
            (
                '{"feature": {"split_queues": {}}}',
                "filters cannot be read: feature.split_queues: is missing or empty, so there is nothing to split",
            ),
        ],
        ids=["no JSON", "no filters"],
    )
    def test_a_session_whose_filters_cannot_be_read_ends_and_the_others_go_on(self, config, reason):
        world = World(session("ann", "red", config=config), session("bob", "red"))

        done = world.forward(message("1", "red"))

        assert done.cancelled == ("ann",)
        assert world.session("ann").reason == reason
        assert world.sent() == {"bob-memes": ["1"]}

    def test_a_reason_is_cut_to_what_a_record_has_room_for(self):
        entry = {"queue_type": "SQS", "message_filter": {"x" * 1000: "("}}
        config = json.dumps({"feature": {"split_queues": {"*": entry}}})
        world = World(session("ann", "red", config=config))

        world.forward(message("1"))

        assert len(world.session("ann").reason or "") == 500


class TestClosing:
    def test_a_call_is_on_account_from_before_it_sends_until_its_messages_are_deleted(self, closing):
        world = closing
        world.queues.queues[FIFO].in_flight = {"handle-1": message("1"), "handle-2": message("2")}

        world.forward(message("1", "red", group="g"), message("2", group="g"), original=FIFO)

        assert world.store.ledger.begun == [(FIFO, "call")]
        assert world.store.ledger.calls == {}
        assert world.queues.queues[FIFO].in_flight == {}
        assert world.sent() == {"ann-orders.fifo": ["1"], "deployed-orders.fifo": ["2"]}

    def test_of_a_call_that_sent_nothing_of_a_message_for_certain_nothing_is_left_to_finish(self, closing):
        closing.sender.failing = {QueueName("ann-orders.fifo")}
        closing.queues.queues[FIFO].in_flight = {"handle-1": message("1")}

        done = closing.forward(message("1", "red", group="g"), original=FIFO)

        assert done.not_done == ("id-1",)
        assert closing.store.ledger.calls == {}
        assert list(closing.queues.queues[FIFO].in_flight) == ["handle-1"]

    def test_a_call_of_which_nobody_knows_what_it_sent_stays_on_account(self, closing):
        closing.sender.uncertain = frozenset({"ann-orders.fifo"})

        done = closing.forward(message("1", "red", group="g"), message("2", group="h"), original=FIFO)

        assert done.not_done == ("id-1",)
        assert list(closing.store.ledger.calls) == [(FIFO, "call")]

    def test_a_call_whose_messages_could_not_be_deleted_stays_on_account(self, closing):
        closing.splitter.queues = NothingIsDeleted()

        done = closing.forward(message("1", "red", group="g"), original=FIFO)

        assert done.not_done == ()
        assert list(closing.store.ledger.calls) == [(FIFO, "call")]

    def test_no_account_is_kept_while_nothing_closes(self):
        world = World(session("ann", "red"))

        world.forward(message("1", "red", group="g"), original=FIFO)

        assert world.store.ledger.begun == []


def test_a_message_without_a_time_of_its_first_receipt_came_just_now():
    world = World(session("ann", "red", effective_at=START))

    world.forward(message("1", "red", group="g", received_at=None), original=FIFO)

    assert world.sent() == {"ann-orders.fifo": ["1"]}


class CountedPattern:
    def __init__(self, pattern: Any, asked: list[str]) -> None:
        self.pattern, self.asked = pattern, asked

    def matches(self, text: str) -> bool:
        self.asked.append(text)
        return bool(self.pattern.matches(text))


class Contested:
    """The records, with another way to save."""

    def __init__(self, splits: Any, save: Any) -> None:
        self.find, self.of_queue, self.save = splits.find, splits.of_queue, save


class NothingIsDeleted(MemorySplitQueues):
    def remove(self, name, receipt_handles):
        raise EffectFailed("no answer")


class Killed(Exception):
    """The function ends here."""


class MortalSender(MemoryQueueSender):
    """A FIFO queue's memory of what it has seen, and a function that is killed at one of its calls."""

    left = 0

    def send(self, batch: Batch):
        self.left -= 1
        if self.left == 0:
            raise Killed
        for delivery in batch.deliveries:
            known = self.sent.setdefault(batch.destination, [])
            if delivery.message.deduplication_id not in {one.deduplication_id for one in known}:
                known.append(delivery.message)
        return ()


@pytest.mark.parametrize("call", range(1, 11))
def test_a_batch_that_was_broken_off_at_any_call_comes_again_and_ends_as_if_it_had_not_been(call):
    messages = [message(str(n), ("red", "blue", "")[n % 3], group="ab"[n % 2]) for n in range(10)]
    broken, whole = (World(session("ann", "red"), session("bob", "blue", phase=Phase.ENDING)) for _ in range(2))
    for world in (broken, whole):
        world.splitter.sender = world.sender = MortalSender()
    broken.sender.left = call

    with pytest.raises(Killed):
        broken.forward(*messages, original=FIFO)
    is_on_account = list(broken.store.ledger.calls) == [(FIFO, "call")]
    undone = [world.forward(*messages, original=FIFO).not_done for world in (broken, whole)]

    assert is_on_account
    assert undone == [(), ()]
    assert by_queue_and_group(broken) == by_queue_and_group(whole)


def by_queue_and_group(world: World) -> Mapping[tuple[str, int], list[str]]:
    return {
        (name, group): [body for body in bodies if int(body) % 2 == group]
        for name, bodies in world.sent().items()
        for group in range(2)
    }
