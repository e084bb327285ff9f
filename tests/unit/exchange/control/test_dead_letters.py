"""Messages that died in their queues become events, once for each that died."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from signalbox.exchange.control.dead_letters import DeadLetterService
from signalbox.exchange.messages.end_events import NOT_DELETED, ReplayOrigin
from signalbox.exchange.messages.replayed_messages import original_of_dead_letter
from signalbox.exchange.model.records import QueueSize
from signalbox.messages import Attribute, Message, MessageId
from signalbox.queues import QueueName
from tests.unit.exchange.control.stage import ExchangeStage

DEAD = QueueName("q_work-dlq")
AT = datetime(2026, 11, 26, 12, tzinfo=UTC)
MOVED = {
    "DeadLetterQueueSourceArn": "arn:aws:sqs:eu-central-1:1:q_work",
    "ApproximateFirstReceiveTimestamp": str(round(AT.timestamp() * 1000)),
    "SentTimestamp": str(round(AT.timestamp() * 1000)),
}
COPY = {
    "topic": Attribute("String", "v03.radar"),
    "exchange": Attribute("String", "xs_alice"),
    "message_id": Attribute("String", "published"),
    "publisher": Attribute("String", "AROA1:a-person"),
    "published_at": Attribute("Number", str(round(AT.timestamp() * 1000) - 250)),
    "sequence": Attribute("Number", "7"),
}
DIED = Message(MessageId("copy-1"), "a body", COPY, MOVED, {})
SENT_DIRECTLY = Message(MessageId("own-1"), "body", {}, MOVED, {})
BY_ROUTER = Message(MessageId("dead-1"), "body", COPY, {"SentTimestamp": "1"}, {})


def stage_with(*messages: Message) -> ExchangeStage:
    stage = ExchangeStage()
    stage.ask("declare_queue", queue="q_work")
    stage.sqs.messages[DEAD], stage.sqs.held[DEAD] = messages, QueueSize(len(messages))
    stage.events.clear()
    return stage


def recorded(stage: ExchangeStage) -> int:
    return DeadLetterService(stage.ports, stage.events.extend).record_new(stage.task_time())


def test_a_message_that_died_has_the_ids_by_which_it_is_traced_and_nothing_of_its_body():
    stage = stage_with(DIED)

    assert recorded(stage) == 1

    (event,) = stage.events
    assert (event.event_id, event.kind, event.outcome) == ("dead_letter:copy-1:q_work:dead", "dead_letter", "dead")
    assert (event.message_id, event.topic, event.sequence) == ("published", "v03.radar", 7)
    assert (event.source, event.destination, event.reason) == ("xs_alice", "q_work", NOT_DELETED)
    assert (event.occurred_at, event.latency_ms) == (AT, 250)
    assert dict(event.labels) == {"publisher": "AROA1", "copy": "copy-1"}


def test_a_message_of_no_exchange_has_its_own_id():
    stage = stage_with(SENT_DIRECTLY)

    recorded(stage)

    (event,) = stage.events
    assert (event.message_id, event.source, dict(event.labels)) == ("own-1", None, {"copy": "own-1"})


def test_the_announced_file_of_a_dead_message_finds_it():
    topic = Attribute("String", "v03.post.data")
    body = '{"pubTime": "20261126T120000.0", "baseUrl": "http://x/", "relPath": "data/a"}'
    stage = stage_with(replace(DIED, body=body, attributes={**COPY, "topic": topic}))

    recorded(stage)

    (event,) = stage.events
    assert len(event.labels["file"]) == 32


@pytest.mark.parametrize("name", ["exchange", "message_id", "publisher"])
@pytest.mark.parametrize("text", ["x" * 900_000, "xs_a\nforged,line", "é" * 201])
def test_what_no_exchange_writes_is_no_property_of_a_dead_letter(name: str, text: str):
    """Who may send to a queue may set the attributes of a copy."""
    stage = stage_with(replace(DIED, attributes={**COPY, name: Attribute("String", text)}))

    recorded(stage)

    (event,) = stage.events
    assert (event.message_id, event.source, dict(event.labels)) == ("copy-1", None, {"copy": "copy-1"})
    assert len(event.to_json()) < 1_000


def test_a_run_reads_5_mb_of_a_queue_with_attributes_of_any_length():
    large = replace(DIED, attributes={**COPY, "header": Attribute("String", "x" * 900_000)})
    stage = stage_with(*(replace(large, message_id=MessageId(f"copy-{number}")) for number in range(60)))

    assert recorded(stage) == 6


def test_only_queues_that_grew_are_read_and_what_the_router_put_there_is_not_recorded_again():
    stage = stage_with(DIED, BY_ROUTER)

    assert [recorded(stage), recorded(stage)] == [1, 0]
    stage.sqs.held[DEAD] = QueueSize(1)
    assert recorded(stage) == 0
    stage.sqs.held[DEAD] = QueueSize(2)
    assert recorded(stage) == 1

    assert len({event.event_id for event in stage.events}) == 1


def test_of_large_dead_letters_a_run_reads_some():
    large = [replace(DIED, message_id=MessageId(f"copy-{number}"), body="x" * 1_000_000) for number in range(20)]
    stage = stage_with(*large)
    read = []
    stage.sqs.peek = lambda *_, **__: (read.append(one) or one for one in large)

    assert [recorded(stage), recorded(stage)] == [5, 0]
    assert len(read) == 5


def test_a_queue_without_a_dead_letter_queue_has_no_dead_letters():
    stage = stage_with()
    del stage.sqs.queues[DEAD]

    assert recorded(stage) == 0


def test_a_replayed_message_is_an_event_with_its_new_id():
    replay = ReplayOrigin("night", "dead_letters", "q_work", "q_again")

    of_copy = replay.sent(original_of_dead_letter(DIED, exchange=None), copy=MessageId("new"), at=AT)
    of_message = replay.sent(SENT_DIRECTLY, copy=MessageId("new"), at=AT)

    assert (of_copy.event_id, of_copy.kind, of_copy.outcome) == ("replayed:copy-1:night", "replayed", "dead_letters")
    assert (of_copy.message_id, of_copy.topic, of_copy.sequence) == ("published", "v03.radar", 7)
    assert (of_copy.source, of_copy.destination) == ("q_work", "q_again")
    assert dict(of_copy.labels) == {"replay": "night", "copy": "new"}
    assert (of_message.event_id, of_message.message_id, of_message.topic) == ("replayed:own-1:night", "own-1", None)
