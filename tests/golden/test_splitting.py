"""Golden files of the stored items and messages of splitting.

A golden file is changed by hand, on purpose, and together with a migration (see `files.py`).
"""

import json
from datetime import timedelta

import pytest

from signalbox.aws.shared.dead_letters import SqsDeadLetters
from signalbox.aws.shared.dynamodb import milliseconds
from signalbox.aws.shared.queue_sender import SqsQueueSender
from signalbox.aws.shared.replies import SqsReplies
from signalbox.aws.splitting.control_queue import SqsControlQueue
from signalbox.aws.splitting.locks import DynamoHeartbeats, DynamoLedger, DynamoLocks, DynamoQueueUses
from signalbox.aws.splitting.splits import DynamoRegistries, DynamoSplits
from signalbox.aws.splitting.target_notes import DynamoAnnotations, DynamoSamples
from signalbox.control.envelope import Envelope
from signalbox.control.protocol import ControlReply, command_body
from signalbox.messages import Message, MessageId
from signalbox.queues import QueueName
from signalbox.sending import Batch, Delivery
from signalbox.splitting.control import commands
from signalbox.splitting.model import events
from signalbox.splitting.model.claims import Decision, FilterOutcome, Mode, SessionVerdict
from signalbox.splitting.model.observed_state import QueueUse, Sample
from signalbox.splitting.model.split import Phase, Split, SplitQueue, SplitSession, Stage
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import StoredRegistry, StoredSplit
from tests.golden.files import AT, RecordingSqs, golden, store, stored_items

SECOND = timedelta(seconds=1)
PREFIX = "https://sqs.us-east-1.amazonaws.com/111122223333/"
APP, SERVICE = Target.parse("lambda/meme-app"), Target.parse("ecs/cluster/meme-app")
MEMES, ORDERS = QueueName("memes"), QueueName("orders.fifo")
CONFIG = '{"feature":{"split_queues":{"memes":{"queue_type":"SQS","message_filter":{"author":"^ann"}}}}}'
DOCUMENTS = [{"kind": "MirrordSplitConfig", "metadata": {"name": "meme"}, "spec": {"queues": []}}]

QUEUES = (
    SplitQueue("memes", MEMES, QueueName("trial-split-d-memes"), 30 * SECOND),
    SplitQueue("orders", ORDERS, QueueName("trial-split-d-orders.fifo"), 12 * SECOND, sns=True, tags=(("team", "a"),)),
)
NEW_SESSION = SplitSession(
    session_id="bob",
    owner="Bob B",
    config="{}",
    started_at=AT,
    heartbeat_at=AT,
    phase=Phase.STARTING,
    since=AT,
    queues={MEMES: QueueName("trial-split-bob-memes"), ORDERS: QueueName("trial-split-bob-orders.fifo")},
)
ENDED_SESSION = SplitSession(
    session_id="ann",
    owner="Ann",
    config=CONFIG,
    started_at=AT - 60 * SECOND,
    heartbeat_at=AT - 2 * SECOND,
    phase=Phase.ENDING,
    since=AT - SECOND,
    queues={MEMES: QueueName("trial-split-ann-memes"), ORDERS: QueueName("trial-split-ann-orders.fifo")},
    stolen=frozenset({MEMES, ORDERS}),
    effective_at=AT - 30 * SECOND,
    reason="stopped",
)
FULL_SPLIT = Split(
    target=APP,
    queues=QUEUES,
    sessions=(ENDED_SESSION, NEW_SESSION),
    stage=Stage.SPLIT,
    since=AT - 50 * SECOND,
    switch_timeout=300 * SECOND,
    drain_timeout=1.5 * SECOND,
    was_split=True,
)
NEW_SPLIT = Split(
    target=SERVICE,
    queues=(SplitQueue("others", QueueName("others"), QueueName("trial-split-d-others"), 30 * SECOND),),
    sessions=(),
    stage=Stage.STARTING,
    since=AT,
    switch_timeout=60 * SECOND,
    drain_timeout=None,
    was_split=False,
)
REGISTRY = StoredRegistry(APP, tuple(DOCUMENTS), AT)
SAMPLES = {MEMES: Sample(AT, 3, 1), ORDERS: Sample(AT, 0, 0)}

MESSAGE = Message.parse(
    {
        "MessageId": "m-1",
        "Body": '{"picture":1}',
        "MessageAttributes": {
            "author": {"DataType": "String", "StringValue": "ann"},
            "thumb": {"DataType": "Binary", "BinaryValue": "AAEC"},
        },
        "Attributes": {
            "MessageGroupId": "g",
            "MessageDeduplicationId": "d",
            "AWSTraceHeader": "Root=1-0",
            "SentTimestamp": "1772366399250",
            "ApproximateReceiveCount": "2",
        },
    }
)


USED, CLOSED = QueueName("trial-split-d-memes"), QueueName("trial-split-ann-memes")


def write_splits(table) -> None:
    splits = DynamoSplits(table)
    stored = splits.create(FULL_SPLIT, documents=DOCUMENTS)
    splits.save(FULL_SPLIT, replacing=stored)
    splits.create(NEW_SPLIT, documents=[])
    DynamoRegistries(table).put(REGISTRY)
    DynamoLocks(table).acquire(APP, holder="h0", now=AT, until=AT + 60 * SECOND)
    DynamoSamples(table).add(APP, SAMPLES)
    annotations = DynamoAnnotations(table)
    annotations.put(APP, "environment:trial-split-ann-memes", '{"MEMES":"trial-split-ann-memes"}')
    annotations.put(APP, "queue:trial-split-ann-memes", "no tags")
    DynamoHeartbeats(table).record(APP, "ann", now=AT)
    DynamoLedger(table).begin(MEMES, [MessageId("message-1")], now=AT)
    uses = DynamoQueueUses(table)
    uses.extend(USED, until=AT)
    uses.close(CLOSED, seen=QueueUse(), now=AT)


def messages() -> dict[str, object]:
    sqs = RecordingSqs()
    SqsControlQueue(sqs, PREFIX + "trial-split-control").ask(commands.Reconcile(APP, "h0"), delay=2 * SECOND)
    SqsQueueSender(sqs, PREFIX).send(Batch(ORDERS, (Delivery(MESSAGE, ORDERS),)))
    dead_letters = SqsDeadLetters(sqs, PREFIX + "trial-split-dead-letters")
    dead_letters.dead_letter(MESSAGE, reason="too long", attributes={"OriginalQueue": ORDERS})
    reconcile, forwarded, dead_letter = sqs.sent
    return {"reconcile": reconcile, "forwarded": forwarded, "dead letter": dead_letter}


ON_APP, SESSION = {"target": str(APP)}, {"target": str(APP), "session": "ann"}
DOCUMENT = {"Body": "text"}
COMMANDS_SENT = {
    "apply": ({"documents": DOCUMENTS}, commands.Apply(tuple(DOCUMENTS))),
    "registries": ({}, commands.ListRegistries()),
    "discover": (ON_APP, commands.Discover(APP)),
    "start": (
        {**SESSION, "owner": "Ann", "config": json.loads(CONFIG)},
        commands.Start(APP, "ann", "Ann", json.loads(CONFIG)),
    ),
    "heartbeat": (SESSION, commands.Heartbeat(APP, "ann")),
    "stop": (SESSION, commands.Stop(APP, "ann")),
    "status": (ON_APP, commands.SplitStatus(APP)),
    "explain": ({**ON_APP, "queue_id": "memes", "messages": [DOCUMENT]}, commands.Explain(APP, "memes", [DOCUMENT])),
    "audit": ({"message_id": "m-1", "days": 3}, commands.Audit("m-1", 3)),
}


def control_messages() -> dict[str, object]:
    sqs = RecordingSqs()
    replies = SqsReplies(sqs, PREFIX + "trial-split-control")
    replies.result(QueueName("trial-split-reply-0011"), "q-1", {"session": "ann", "phase": "ready"})
    replies.error(QueueName("trial-split-reply-0011"), "q-1", "no registry", "rejected")
    result, error = sqs.sent
    commands = {
        name: command_body(name, request_id="q-1", fields=fields) for name, (fields, _) in COMMANDS_SENT.items()
    }
    return {**commands, "result": result, "error": error}


MATCH = SessionVerdict("ann", Mode.STEAL, FilterOutcome.MATCH, "author matches '^ann'")
COPY = SessionVerdict("bob", Mode.MIRROR, FilterOutcome.MATCH, "author matches 'n'")
OWNED, UNOWNED = Decision("ann", ("bob",), (MATCH, COPY)), Decision(None, (), ())
OF = {"split": FULL_SPLIT, "queue": QUEUES[1], "at": AT}
OWNER, MIRROR = events.routed(MESSAGE, OWNED, **OF)
EVENTS = {
    "routed to owner": OWNER,
    "routed to mirror": MIRROR,
    "routed to deployed": events.routed(MESSAGE, UNOWNED, **OF)[0],
    "returned to original": events.returned(MESSAGE, None, left_by="ann", **OF),
    "returned to heir": events.returned(MESSAGE, OWNED, left_by="bob", **OF),
    "dead letter": events.dead_letter(MESSAGE, target=APP, original=ORDERS, reason="too long", at=AT),
    "session ended": events.session(ENDED_SESSION, "ended", target=APP, at=AT),
    "session started": events.session(NEW_SESSION, "started", target=APP, at=AT),
}


def test_items_are_written_as_in_the_golden_file(split_table) -> None:
    write_splits(split_table)

    assert stored_items(split_table) == golden("splitting", "items")


def test_golden_items_are_read(split_table) -> None:
    store(split_table, golden("splitting", "items"))

    splits, annotations = DynamoSplits(split_table), DynamoAnnotations(split_table)
    full = StoredSplit(FULL_SPLIT, milliseconds(FULL_SPLIT.since) + 1, tuple(DOCUMENTS))
    new = StoredSplit(NEW_SPLIT, milliseconds(NEW_SPLIT.since), ())
    assert [splits.find(APP), splits.of_queue(ORDERS), splits.find(SERVICE)] == [full, full, new]
    assert sorted(splits.every(), key=str) == sorted([full, new], key=str)
    assert DynamoRegistries(split_table).find(APP) == REGISTRY
    assert DynamoSamples(split_table).add(APP, {}) == {name: (sample,) for name, sample in SAMPLES.items()}
    assert annotations.of(APP) == {
        "environment:trial-split-ann-memes": '{"MEMES":"trial-split-ann-memes"}',
        "queue:trial-split-ann-memes": "no tags",
    }
    assert DynamoHeartbeats(split_table).of(FULL_SPLIT) == {"ann": AT}
    assert DynamoLedger(split_table).unfinished(MEMES) == [AT]
    uses = DynamoQueueUses(split_table)
    assert uses.of([USED, CLOSED]) == {USED: QueueUse(AT), CLOSED: QueueUse(is_closed=True)}
    locks = DynamoLocks(split_table)
    assert not locks.acquire(APP, holder="other", now=AT + 59 * SECOND, until=AT + 120 * SECOND)
    assert locks.acquire(APP, holder="h0", now=AT, until=AT + 120 * SECOND)


def test_messages_are_written_as_in_the_golden_file() -> None:
    assert messages() == golden("splitting", "messages")


def test_control_messages_are_written_as_in_the_golden_file() -> None:
    assert control_messages() == golden("splitting", "control")


@pytest.mark.parametrize("name", COMMANDS_SENT)
def test_golden_commands_are_read(name: str) -> None:
    envelope = Envelope.parse(golden("splitting", "control")[name])

    assert (envelope.request_id, envelope.wants_reply) == ("q-1", True)
    assert envelope.command(commands.COMMANDS) == COMMANDS_SENT[name][1]


def test_golden_replies_are_read() -> None:
    found = golden("splitting", "control")
    result, error = (ControlReply.parse(found[name]["MessageBody"]) for name in ("result", "error"))

    assert result == ControlReply("q-1", result={"session": "ann", "phase": "ready"})
    assert error == ControlReply("q-1", error="no registry", is_rejection=True)


def test_a_golden_reconcile_command_is_read() -> None:
    body = golden("splitting", "messages")["reconcile"]["MessageBody"]

    assert Envelope.parse(body).command(commands.COMMANDS) == commands.Reconcile(APP, "h0")


@pytest.mark.parametrize("name", EVENTS)
def test_history_events_are_written_as_in_the_golden_file(name: str) -> None:
    assert EVENTS[name].to_json() == golden("splitting", "events")[name]
