"""The splitter: recipients, redelivered messages, cancelled sessions and history events."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from signalbox.errors import Contended, EffectFailed
from signalbox.history.event import HistoryEvent
from signalbox.kept.objects import NotKept, read_batch
from signalbox.messages import Message
from signalbox.queues import QueueName
from signalbox.sending import Batch, SentBatch
from signalbox.splitting.forwarding.batch_sender import BatchSender
from signalbox.splitting.forwarding.decider import RECORD_AGE, Decider, FilterLimits, SplitUnknown
from signalbox.splitting.forwarding.splitter import ForwardResult, Splitter
from signalbox.splitting.forwarding.use_recorder import USE_LASTS, UseRecorder
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.observed_state import QueueUse
from signalbox.splitting.model.s3_objects import ObjectMetadata, S3Object, Unread
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.split import (
    Phase,
    Split,
    SplitQueue,
    SplitSession,
    Stage,
    ended,
    with_heartbeats,
    with_kept,
)
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import SplitTooLarge
from tests.fakes.clock import START, MemoryTime
from tests.fakes.kept import MemoryKeptMessages
from tests.fakes.splitting import MemoryDeadLetters, MemoryQueue, MemoryQueueSender, MemorySplitQueues, MemoryStore
from tests.unit.splitting.forwarding.languages import KILLS, SLOW, PlainLanguages
from tests.unit.splitting.model.test_s3_objects import MemoryObjects, event, record

STANDARD, FIFO = QueueName("memes"), QueueName("orders.fifo")
TARGET = Target.parse("lambda/meme-app")
SETTLE = timedelta(seconds=22)
LONG_AGO = START - timedelta(hours=1)
FILTER_TIME = timedelta(seconds=10)


def session(name: str, color: str, *, mode: str = "steal", **changes: Any) -> SplitSession:
    entry = {"queue_type": "SQS", "queue_mode": mode, "message_filter": {"color": color}}
    found = SplitSession(
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
    attributes = {"ApproximateReceiveCount": str(attempt), "SentTimestamp": str(milliseconds(START))}
    if received_at is not None:
        attributes["ApproximateFirstReceiveTimestamp"] = str(milliseconds(received_at))
    if group is not None:
        attributes |= {"MessageGroupId": group, "MessageDeduplicationId": f"d-{body}"}
    document: dict[str, object] = {
        "MessageId": f"id-{body}",
        "ReceiptHandle": f"handle-{body}",
        "Body": body,
        "Attributes": attributes,
    }
    if color:
        document["MessageAttributes"] = {"color": {"DataType": "String", "StringValue": color}}
    return Message.parse(document)


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


class CountingLanguages(PlainLanguages):
    """Counts compilations; the pattern `slow` times out."""

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


class SplitterStage:
    """A split in memory with its splitter; each reading of the clock advances it by `step`."""

    def __init__(self, *sessions: SplitSession, objects: ObjectMetadata | None = None, s3_event: bool = False) -> None:
        self.store, self.time, self.sender = MemoryStore(), MemoryTime(), UncertainSender()
        self.dead_letters = UnavailableDeadLetters()
        self.queues = MemorySplitQueues(queues={name: MemoryQueue() for name in (STANDARD, FIFO)})
        self.languages = CountingLanguages()
        self.step, self.is_late = timedelta(0), False
        self.kept, self.splits, self.objects = MemoryKeptMessages(), self.store.splits, objects
        self.recorded: list[HistoryEvent] = []
        self.record: Callable[[Sequence[HistoryEvent]], None] = self.recorded.extend
        self.use()
        queues = tuple(
            SplitQueue(QueueId(name), name, QueueName(f"deployed-{name}"), timedelta(seconds=30), s3_event=s3_event)
            for name in (STANDARD, FIFO)
        )
        split = Split(TARGET, queues, sessions, Stage.SPLIT, LONG_AGO, timedelta(seconds=120), was_split=True)
        assert self.store.splits.create(split, documents=[])

    def use(self, **parts: object) -> None:
        """Use other parts in the splitter."""
        for name, part in parts.items():
            setattr(self, name, part)
        uses = UseRecorder(self.store.uses, self.now)
        limits = FilterLimits(self.languages, total=FILTER_TIME, settle=SETTLE)
        self.splitter = Splitter(
            Decider(self.splits, uses, limits, self.now, self.objects),
            self.kept,
            BatchSender(
                self.sender, uses, self.dead_letters, self.store.ledger, self.queues, self.now, lambda: self.is_late
            ),
            self.record,
            self.now,
        )

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

    def forward(self, *messages: Message, original: QueueName = STANDARD) -> ForwardResult:
        return self.splitter.forward(messages, original)

    def sent(self) -> Mapping[str, list[str]]:
        return {name: self.sender.bodies(name) for name in self.sender.sent}

    def session(self, name: str) -> SplitSession:
        found = self.split.session(SessionId(name))
        assert found is not None
        return found


@pytest.fixture
def closing() -> SplitterStage:
    """Return a stage in which ann's session is ending, so the forwarding of the FIFO queue is about to pause."""
    return SplitterStage(session("ann", "red", phase=Phase.ENDING, since=START), session("bob", "blue"))


def happened(forwarded: ForwardResult) -> list[tuple[str, str, str | None, str | None]]:
    return [(one.kind, one.outcome, one.message_id, one.destination) for one in forwarded.events]


def test_each_queue_receives_its_messages_in_one_call():
    stage = SplitterStage(session("ann", "red"), session("bob", "red|blue"))

    done = stage.forward(message("1", "red"), message("2", "blue"), message("3"), message("4", "red"))

    assert done.not_done == ()
    assert stage.sent() == {"ann-memes": ["1", "4"], "bob-memes": ["2"], "deployed-memes": ["3"]}
    assert len(stage.sender.calls) == 3


def test_a_session_that_mirrors_gets_copies_and_the_deployed_consumer_its_messages():
    stage = SplitterStage(session("ann", "red", mode="mirror"))

    done = stage.forward(message("1", "red"))

    assert stage.sent() == {"deployed-memes": ["1"], "ann-memes": ["1"]}
    assert happened(done) == [
        ("routed", "deployed", "id-1", "deployed-memes"),
        ("routed", "copied", "id-1", "ann-memes"),
    ]
    assert [one.labels["copy"] for one in done.events] == ["id-1 in deployed-memes", "id-1 in ann-memes"]


def test_messages_of_a_queue_without_a_split_are_not_sent():
    stage = SplitterStage()

    with pytest.raises(SplitUnknown, match="'other' belongs to no split"):
        stage.forward(message("1"), original=QueueName("other"))


def test_messages_of_a_queue_that_the_record_lacks_are_not_sent():
    stage = SplitterStage()
    stage.change(replace(stage.split, queues=stage.split.queues[:1]))

    with pytest.raises(SplitUnknown):
        stage.forward(message("1", group="g"), original=FIFO)


def test_a_record_is_cached_for_two_seconds():
    stage = SplitterStage()
    stage.forward(message("1", "red"))
    stage.change(replace(stage.split, sessions=(session("ann", "red"),)))

    stage.time.moment += RECORD_AGE - timedelta(milliseconds=1)
    stage.forward(message("2", "red"))
    stage.time.moment += timedelta(milliseconds=1)
    stage.forward(message("3", "red"))

    assert stage.sent() == {"deployed-memes": ["1", "2"], "ann-memes": ["3"]}


def test_heartbeats_do_not_cause_compilations():
    stage = SplitterStage(session("ann", "red"))

    for _ in range(3):
        stage.forward(message("1", "red"))
        stage.change(with_heartbeats(stage.split, {SessionId("ann"): stage.time.moment}))
        stage.time.moment += RECORD_AGE

    assert stage.languages.compiled == ["red"]


def test_a_failed_message_is_redelivered():
    stage = SplitterStage(session("ann", "red"))
    stage.sender.failing = {QueueName("ann-memes")}

    done = stage.forward(message("1", "red"), message("2"))

    assert done.not_done == ("id-1",)
    assert happened(done) == [("routed", "deployed", "id-2", "deployed-memes")]


def test_a_call_that_is_late_begins_no_further_message_of_a_group():
    """Otherwise it is killed, and begins with the first message again, until all are dead letters of the owner."""
    stage = SplitterStage(session("ann", "red"))
    stage.is_late = True
    group = [message(number, "red", group="g") for number in ("1", "2", "3")]

    first = stage.forward(*group, message("4", group="h"), original=FIFO)
    second = stage.forward(*group[1:], original=FIFO)

    assert (first.not_done, second.not_done) == (("id-2", "id-3"), ("id-3",))
    assert stage.sent() == {"ann-orders.fifo": ["1", "2"], "deployed-orders.fifo": ["4"]}
    assert stage.forward(message("5"), message("6", "red")).not_done == ()


def test_a_permanently_refused_message_is_dead_lettered_and_delays_nothing():
    stage = SplitterStage()
    stage.sender.refused_bodies = {"bad": "InvalidMessageContents"}

    done = stage.forward(message("bad", group="a"), message("2", group="a"), original=FIFO)

    assert done.not_done == ()
    assert [(one.message_id, *reason) for one, *reason in stage.dead_letters.messages] == [
        ("id-bad", FIFO, "InvalidMessageContents")
    ]
    assert [(one.kind, one.outcome, one.reason) for one in done.events] == [
        ("dead_letter", "dead", "InvalidMessageContents"),
        ("routed", "deployed", None),
    ]


def test_a_message_that_cannot_be_dead_lettered_is_redelivered():
    stage = SplitterStage()
    stage.sender.refused_bodies = {"bad": "InvalidMessageContents"}
    stage.dead_letters.is_closed = True

    done = stage.forward(message("bad"))

    assert (done.not_done, done.events) == (("id-bad",), ())


def test_a_refused_copy_is_not_dead_lettered():
    stage = SplitterStage(session("ann", "red", mode="mirror"), session("bob", "red", mode="mirror"))
    stage.sender.refusing = {QueueName("ann-memes"): "InvalidParameterValue"}

    done = stage.forward(message("1", "red"))

    assert (done.not_done, stage.dead_letters.messages) == ((), [])
    assert [(one.outcome, one.destination) for one in done.events] == [
        ("deployed", "deployed-memes"),
        ("copied", "bob-memes"),
    ]


class TestSlowFilters:
    def test_a_filter_that_is_stopped_ends_its_session_with_the_reason_and_the_batch_goes_on(self):
        stage = SplitterStage(session("ann", SLOW), session("bob", "blue"))

        done = stage.forward(message("1", "blue"), message("2", "green"))

        assert (done.not_done, done.cancelled) == ((), ("ann",))
        assert stage.sent() == {"bob-memes": ["1"], "deployed-memes": ["2"]}
        assert stage.session("ann").phase is Phase.ENDING
        assert stage.session("ann").reason == "filter stopped: pattern 'slow' took longer than 1 s"
        assert stage.session("bob").phase is Phase.READY

    def test_the_next_batch_is_forwarded_by_the_new_record_at_once(self):
        stage = SplitterStage(session("ann", SLOW))
        stage.forward(message("1", "blue"))

        done = stage.forward(message("2", "blue"))

        assert done.cancelled == ()
        assert stage.sent() == {"deployed-memes": ["1", "2"]}

    def test_a_slow_filter_is_evaluated_for_each_fifo_message(self):
        asked = []

        class Slow(CountingLanguages):
            def pattern(self, text: str, *, case_sensitive: bool):
                found = super().pattern(text, case_sensitive=case_sensitive)
                return CountedPattern(found, asked)

        stage = SplitterStage(session("ann", SLOW))
        stage.use(languages=Slow())

        stage.forward(message("1", "a", group="g"), message("2", "b", group="g"), original=FIFO)

        assert asked == ["a", "b"]

    def test_a_slow_filter_is_skipped_for_fifo_messages_after_the_settle_time(self):
        ended_at = START - SETTLE
        ann = session("ann", SLOW, phase=Phase.ENDING, since=ended_at, reason="filter stopped: pattern")
        stage = SplitterStage(ann, session("bob", "blue"))

        before = message("1", "x", group="g", received_at=START - timedelta(milliseconds=1))
        done = stage.forward(before, original=FIFO)
        after = stage.forward(message("2", "x", group="g"), original=FIFO)

        assert [verdict.attempt for verdict in done.events] == [1]
        assert (done.cancelled, after.cancelled) == ((), ())
        assert sorted(stage.languages.compiled) == ["blue", "slow"]
        assert stage.sent() == {"deployed-orders.fifo": ["1", "2"]}

    @pytest.mark.parametrize("original", [STANDARD, FIFO])
    def test_every_message_is_decided_however_much_time_the_filters_of_others_take(self, original):
        slow = [session(name, f"{SLOW}-{name}") for name in "abcdefghijkl"]
        stage = SplitterStage(*slow, session("bob", "red"))

        batch = [message(str(number), "red", group="g") for number in range(10)]
        done = stage.forward(*batch, original=original)

        assert (done.not_done, done.cancelled) == ((), tuple("abcdefghijkl"))
        assert stage.sent() == {f"bob-{original}": [str(number) for number in range(10)]}
        assert stage.languages.slow_seconds < FILTER_TIME.total_seconds()

    def test_a_session_is_ended_before_the_next_filter_is_evaluated(self):
        """So a call that the next filter kills has made progress."""
        stage = SplitterStage(session("ann", SLOW), session("bob", KILLS))

        with pytest.raises(SystemExit):
            stage.forward(message("1", "x"))

        assert [stage.session(name).phase for name in ("ann", "bob")] == [Phase.ENDING, Phase.READY]

    def test_a_cancellation_is_retried_when_other_writers_change_the_record(self):
        stage = SplitterStage(session("ann", SLOW))
        save, others = stage.store.splits.save, iter(range(3))

        def contested(split, *, replacing):
            if next(others, None) is not None:
                save(with_heartbeats(stage.split, {SessionId("ann"): START}), replacing=replacing)
            return save(split, replacing=replacing)

        stage.use(splits=Contested(stage.store.splits, contested))

        assert stage.forward(message("1", "x")).cancelled == ("ann",)

    def test_a_cancellation_that_never_succeeds_is_left_to_the_next_batch(self):
        stage = SplitterStage(session("ann", SLOW))
        stage.use(splits=Contested(stage.store.splits, lambda split, *, replacing: None))

        done = stage.forward(message("1", "x"))

        assert (done.cancelled, done.not_done) == ((), ())
        assert stage.session("ann").phase is Phase.READY

    def test_a_session_that_has_already_ended_keeps_its_reason(self):
        stage = SplitterStage(session("ann", SLOW))
        stage.forward(message("1"))
        stage.change(ended(stage.split, SessionId("ann"), reason="stopped", now=START))

        assert stage.forward(message("2", "x")).cancelled == ()
        assert stage.session("ann").reason == "stopped"

    def test_a_split_that_has_ended_is_not_written(self):
        stage = SplitterStage(session("ann", SLOW))
        stage.forward(message("1"))
        stored = stage.store.splits.find(TARGET)
        assert stored is not None
        stage.store.splits.forget(stored)

        assert stage.forward(message("2", "x")).cancelled == ()


class TestClosedQueues:
    @pytest.mark.parametrize("original", [STANDARD, FIFO])
    def test_the_use_of_a_queue_is_recorded_before_messages_are_sent_to_it(self, original):
        stage = SplitterStage(session("ann", "red"), session("eve", "red", mode="mirror"))
        stage.sender.failing = {QueueName(f"{name}-{original}") for name in ("ann", "eve", "deployed")}

        stage.forward(message("1", "red", group="g"), message("2", group="h"), original=original)

        assert sorted(stage.store.uses.uses) == sorted(stage.sender.failing)

    @pytest.mark.parametrize("original", [STANDARD, FIFO])
    def test_messages_of_a_session_whose_queue_is_closed_go_to_the_next(self, original):
        stage = SplitterStage(session("ann", "red"), session("bob", "red"), session("cyd", "red"))
        for name in ("ann", "bob"):
            stage.store.uses.close(QueueName(f"{name}-{original}"), seen=QueueUse(), now=START)

        done = stage.forward(message("1", "red", group="g"), message("2", "blue", group="g"), original=original)

        assert done.not_done == ()
        assert stage.sent() == {f"cyd-{original}": ["1"], f"deployed-{original}": ["2"]}

    def test_a_queue_that_is_closed_after_the_decision_gets_nothing(self):
        stage = SplitterStage(session("ann", "red"))
        extend = stage.store.uses.extend
        answers = iter([True, False])  # the first use has passed when the call sends
        stage.store.uses.extend = lambda name, until: next(answers) and extend(name, until=START)

        stage.step = USE_LASTS
        done = stage.forward(message("1", "red"))

        assert done.not_done == ("id-1",)
        assert stage.sent() == {}


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
    def test_a_session_with_unreadable_filters_ends_and_the_others_continue(self, config, reason):
        stage = SplitterStage(session("ann", "red", config=config), session("bob", "red"))

        done = stage.forward(message("1", "red"))

        assert done.cancelled == ("ann",)
        assert stage.session("ann").reason == reason
        assert stage.sent() == {"bob-memes": ["1"]}

    def test_a_session_whose_end_is_refused_costs_the_others_nothing(self):
        stage = SplitterStage(session("ann", "red", config="{"), session("bob", "red"))
        stage.store.splits.save = lambda *_, **__: refuse()

        def refuse():
            raise SplitTooLarge("item size has exceeded the maximum allowed size")

        done = stage.forward(message("1", "red"), message("2", "blue"))

        assert (done.cancelled, done.not_done) == ((), ())
        assert stage.sent() == {"bob-memes": ["1"], "deployed-memes": ["2"]}

    def test_a_long_reason_is_truncated(self):
        entry = {"queue_type": "SQS", "message_filter": {"x" * 1000: "("}}
        config = json.dumps({"feature": {"split_queues": {"*": entry}}})
        stage = SplitterStage(session("ann", "red", config=config))

        stage.forward(message("1"))

        assert len(stage.session("ann").reason or "") == 500


class TestClosing:
    def test_messages_of_a_closing_queue_are_in_the_ledger_until_they_are_deleted(self, closing):
        stage = closing
        stage.queues.queues[FIFO].in_flight = {"handle-1": message("1"), "handle-2": message("2")}

        stage.forward(message("1", "red", group="g"), message("2", group="g"), original=FIFO)

        assert [one.messages for one in stage.store.ledger.begun] == [{"id-1", "id-2"}]
        assert stage.store.ledger.calls == []
        assert stage.queues.queues[FIFO].in_flight == {}
        assert stage.sent() == {"ann-orders.fifo": ["1"], "deployed-orders.fifo": ["2"]}

    def test_a_closing_call_records_its_events_before_it_deletes_its_messages(self, closing):
        def killed(events):
            raise KeyboardInterrupt(len(events))

        closing.queues.queues[FIFO].in_flight = {"handle-1": message("1")}
        closing.use(record=killed)

        with pytest.raises(KeyboardInterrupt, match="1"):
            closing.forward(message("1", "red", group="g"), original=FIFO)

        assert list(closing.queues.queues[FIFO].in_flight) == ["handle-1"]
        assert closing.store.ledger.messages == ["id-1"]

    @pytest.mark.parametrize("failing", ["failing", "uncertain"])
    def test_a_message_that_comes_again_stays_in_the_ledger(self, closing, failing):
        setattr(closing.sender, failing, {QueueName("ann-orders.fifo")})
        closing.queues.queues[FIFO].in_flight = {"handle-1": message("1"), "handle-2": message("2")}

        done = closing.forward(message("1", "red", group="g"), message("2", group="h"), original=FIFO)

        assert done.not_done == ("id-1",)
        assert closing.store.ledger.messages == ["id-1"]

    def test_a_message_that_comes_again_ends_the_call_that_was_killed_with_it(self, closing):
        closing.store.ledger.begin(FIFO, ["id-1", "id-2"], now=START)
        closing.queues.queues[FIFO].in_flight = {"handle-1": message("1"), "handle-2": message("2")}

        closing.forward(message("1", group="g", attempt=2), message("3", group="h"), original=FIFO)
        assert closing.store.ledger.messages == ["id-2"]

        closing.forward(message("2", group="g"), original=FIFO)
        assert closing.store.ledger.messages == ["id-2"]

    def test_a_ledger_that_is_busy_costs_no_message(self, closing):
        def refuse(*_, **__):
            raise Contended

        closing.store.ledger.finish = refuse

        assert closing.forward(message("1", "red", group="g"), original=FIFO).not_done == ()

    def test_a_message_that_could_not_be_deleted_stays_in_the_ledger(self, closing):
        closing.use(queues=NothingIsDeleted())

        done = closing.forward(message("1", "red", group="g"), original=FIFO)

        assert done.not_done == ()
        assert closing.store.ledger.messages == ["id-1"]

    def test_the_ledger_is_unused_while_no_queue_closes(self):
        stage = SplitterStage(session("ann", "red"))

        stage.forward(message("1", "red", group="g"), original=FIFO)

        assert stage.store.ledger.begun == []


def test_a_message_without_a_first_receive_time_counts_as_new():
    stage = SplitterStage(session("ann", "red", effective_at=START))

    stage.forward(message("1", "red", group="g", received_at=None), original=FIFO)

    assert stage.sent() == {"ann-orders.fifo": ["1"]}


class CountedPattern:
    def __init__(self, pattern: Any, asked: list[str]) -> None:
        self.pattern, self.asked = pattern, asked

    def matches(self, text: str) -> bool:
        self.asked.append(text)
        return bool(self.pattern.matches(text))


class Contested:
    """The records, with a replaceable `save`."""

    def __init__(self, splits: Any, save: Any) -> None:
        self.find, self.of_queue, self.save = splits.find, splits.of_queue, save


class NothingIsDeleted(MemorySplitQueues):
    def remove(self, name, receipt_handles):
        raise EffectFailed("no answer")


class Killed(Exception):
    """Raised where the function is killed."""


class MortalSender(MemoryQueueSender):
    """A sender that deduplicates like a FIFO queue, and is killed at one of its calls."""

    left = 0

    def send(self, batch: Batch):
        self.left -= 1
        if self.left == 0:
            raise Killed
        for delivery in batch.deliveries:
            known = self.sent.setdefault(batch.destination, [])
            if delivery.message.deduplication_id not in {one.deduplication_id for one in known}:
                known.append(delivery.message)
        return SentBatch()


@pytest.mark.parametrize("call", range(1, 11))
def test_a_batch_killed_at_any_call_ends_like_an_uninterrupted_one(call):
    messages = [message(str(n), ("red", "blue", "")[n % 3], group="ab"[n % 2]) for n in range(10)]
    broken, whole = (SplitterStage(session("ann", "red"), session("bob", "blue", phase=Phase.ENDING)) for _ in range(2))
    for stage in (broken, whole):
        stage.use(sender=MortalSender())
    broken.sender.left = call

    with pytest.raises(Killed):
        broken.forward(*messages, original=FIFO)
    is_on_account = broken.store.ledger.messages == sorted(one.message_id for one in messages)
    undone = [stage.forward(*messages, original=FIFO).not_done for stage in (broken, whole)]

    assert is_on_account
    assert undone == [(), ()]
    assert by_queue_and_group(broken) == by_queue_and_group(whole)


def by_queue_and_group(stage: SplitterStage) -> Mapping[tuple[str, int], list[str]]:
    return {
        (name, group): [body for body in bodies if int(body) % 2 == group]
        for name, bodies in stage.sent().items()
        for group in range(2)
    }


def of_client(name: str) -> SplitSession:
    entry = {"queue_type": "SQS", "jq_filter": '.S3Metadata.client == "a"'}
    return session(name, "", config=json.dumps({"feature": {"split_queues": {"*": entry}}}))


def uploads() -> list[Message]:
    found = {key: message(key).document for key in ("mine", "yours", "gone")}
    return [Message.parse({**document, "Body": event(record(key))}) for key, document in found.items()]


def test_s3_events_go_to_the_session_that_asks_for_the_metadata_of_their_objects():
    objects = MemoryObjects({"mine": {"client": "a"}, "yours": {"client": "b"}})
    stage = SplitterStage(of_client("ann"), objects=objects, s3_event=True)

    done = stage.forward(*uploads())

    assert {name: len(found) for name, found in stage.sent().items()} == {"ann-memes": 1, "deployed-memes": 2}
    assert stage.sent()["ann-memes"] == [event(record("mine"))]
    assert objects.asked == [{S3Object("demo-uploads", key) for key in ("mine", "yours", "gone")}]
    assert done.not_done == ()
    labels = [one.labels.get("s3_metadata") for one in done.events]
    assert labels == [None, None, Unread.MISSING]
    assert "client" not in "".join(one.to_json() for one in done.events).replace('.client == \\"a', "")


def test_objects_of_other_queues_are_not_read():
    objects = MemoryObjects({"mine": {"client": "a"}})
    stage = SplitterStage(of_client("ann"), objects=objects)

    stage.forward(*uploads())

    assert (list(stage.sent()), objects.asked) == (["deployed-memes"], [])


def kept_stage(*sessions: SplitSession) -> tuple[SplitterStage, MemoryKeptMessages]:
    """Return a split whose standard queue is kept."""
    stage = SplitterStage(*sessions)
    stored = stage.store.splits.find(TARGET)
    assert stored is not None
    assert stage.store.splits.save(with_kept(stored.split, STANDARD, is_kept=True), replacing=stored)
    return stage, stage.kept


def test_where_nothing_can_be_kept_the_messages_of_a_kept_queue_are_sent():
    stage, kept = kept_stage(session("ann", "red"))
    stage.use(kept=None)

    done = stage.forward(message("1", "red"))

    assert (kept.texts, len(stage.sender.sent)) == ({}, 1)
    assert "kept" not in {event.kind for event in done.events}


def test_the_messages_of_a_kept_queue_are_stored_in_one_object_before_they_are_sent():
    stage, kept = kept_stage(session("ann", "red"))

    done = stage.splitter.forward([message("1", "red"), message("2")], STANDARD)

    (key,) = kept.texts
    assert [one.body for one in read_batch(kept.texts[key])] == ["1", "2"]
    found = [event for event in done.events if event.kind == "kept"]
    assert [(event.message_id, event.labels) for event in found] == [
        ("id-1", {"target": "lambda/meme-app", "object": key}),
        ("id-2", {"target": "lambda/meme-app", "object": key}),
    ]
    assert all(event.size_bytes is None and event.reason is None for event in found)  # the id alone


def test_a_queue_that_is_not_kept_is_stored_nowhere():
    stage, kept = kept_stage(session("ann", "red"))

    stage.splitter.forward([message("1", "red", group="g")], FIFO)

    assert kept.texts == {}


def test_messages_that_cannot_be_kept_are_not_sent():
    stage, kept = kept_stage(session("ann", "red"))
    kept.is_failing = True

    with pytest.raises(NotKept):
        stage.splitter.forward([message("1", "red")], STANDARD)

    assert stage.sender.sent == {}
