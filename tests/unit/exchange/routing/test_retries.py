"""Retries of copies: in order, until their queues accept them."""

import json
from dataclasses import replace

import pytest

from signalbox.exchange.messages.deliveries import DeliveredMessage
from signalbox.exchange.model.records import GroupBy
from signalbox.exchange.routing.copy_dispatcher import ATTEMPTS_WITHOUT_QUEUE, LONGEST_PAUSE
from signalbox.messages import Attribute, Message, MessageId
from signalbox.queues import QueueName
from tests.unit.exchange.routing.naive_sqs import VISIBILITY
from tests.unit.exchange.routing.routing_world import DEAD, NAMES, ORDERED_RETRIES, RETENTION, RETRIES, World

LOG = "xlog.fifo"
QUEUE, ORDERED = QueueName("q_a"), QueueName("q_a.fifo")


@pytest.fixture
def world() -> World:
    """Return a world in which one copy waits for each of two queues that accept nothing."""
    made = World()
    made.declare("xs")
    made.declare(LOG)
    made.bind("xs", "#", queue=QUEUE)
    made.bind(LOG, "#", queue=ORDERED)
    made.sqs.trouble = {QUEUE: "closed", ORDERED: "closed"}
    made.publish("xs", "a", body="0", color="red")
    made.publish(LOG, "a", body="0", color="red")
    made.route("xs")
    made.route(LOG)
    return made


@pytest.mark.parametrize(("queue", "is_ordered"), [(QUEUE, False), (ORDERED, True)])
def test_a_copy_arrives_as_it_would_have_at_once(world, queue, is_ordered) -> None:
    world.sqs.trouble = {}
    world.publish(LOG if is_ordered else "xs", "a", body="1", color="red")

    world.retry(is_ordered=is_ordered)
    world.route(LOG if is_ordered else "xs")

    late, direct = (message for message in world.messages(queue))
    assert late.body == "0"
    found, other = DeliveredMessage.parse(late), DeliveredMessage.parse(direct)
    assert found.sequence == (1 if is_ordered else None)
    same = {"body": "", "sequence": None, "message_id": ""}
    assert replace(found, **same) == replace(other, **same)
    assert late.group_id == direct.group_id


@pytest.mark.parametrize(("group_by", "group"), [(GroupBy.PUBLISHER, "AIDA"), (GroupBy.TOPIC, "a.b")])
def test_every_copy_of_a_standard_queue_has_the_group_that_its_setting_says_at_once_and_later(group_by, group) -> None:
    world = World()
    world.declare("xs")
    world.bind("xs", "#", queue=QUEUE)
    world.table.groups[QUEUE] = group_by
    world.sqs.trouble = {QUEUE: "closed"}
    world.publish("xs", "a.b", body="0")
    world.route("xs")
    world.sqs.trouble = {}
    world.retry(is_ordered=False)
    world.publish("xs", "a.b", body="1")
    world.route("xs")

    assert {message.body: message.group_id for message in world.messages(QUEUE)} == {"0": group, "1": group}


@pytest.mark.parametrize(("queue", "is_ordered"), [(QUEUE, False), (ORDERED, True)])
def test_a_copy_waits_however_long_its_queue_cannot_be_reached(world, queue, is_ordered) -> None:
    for _ in range(100):
        routed = world.retry(is_ordered=is_ordered)
        world.moment += LONGEST_PAUSE.total_seconds()
        assert len(routed.not_done) == 1
    world.sqs.trouble = {}
    world.retry(is_ordered=is_ordered)

    assert world.bodies(queue) == ["0"]
    assert world.bodies("q_a-dlq.fifo" if is_ordered else "q_a-dlq") == []


def attempts(world: World, *, is_ordered: bool, seconds: int) -> list[float]:
    """Retry every second for some time; return when copies were received."""
    at = []
    for _ in range(seconds):
        if world.retry(is_ordered=is_ordered).not_done:
            at.append(world.moment)
        world.moment += 1
    return at


@pytest.mark.parametrize("is_ordered", [False, True])
def test_the_pause_between_attempts_doubles_up_to_a_minute_and_a_half(world, is_ordered) -> None:
    assert attempts(world, is_ordered=is_ordered, seconds=400) == [0, 30, 90, 180, 270, 360]


@pytest.mark.parametrize(("exchange", "name"), [("xs", "team"), ("xs", "team.fifo"), (LOG, "team.fifo"), (LOG, "team")])
def test_an_existing_queue_that_refuses_copies_gets_none_after_a_quarter_of_an_hour(world, exchange, name) -> None:
    """Its owner could otherwise fill the retry queues of the stage with them for days."""
    is_ordered = exchange == LOG and name.endswith(".fifo")
    world.bind(exchange, "#", queue=f"sqs:{name}")
    world.sqs.trouble = {QueueName(name): "denied"}
    for number in range(25):
        world.publish(exchange, "a", body=f"late {number}")
    for _ in range(3):
        world.route(exchange)
    attempts(world, is_ordered=is_ordered, seconds=800)
    world.publish(exchange, "a", body="later")
    world.route(exchange)

    attempts(world, is_ordered=is_ordered, seconds=120)

    dead = {message.body: message.attributes["Reason"].text for message in world.sqs.queues[DEAD].messages()}
    assert sorted(dead) == sorted(f"late {number}" for number in range(25))
    assert set(dead.values()) == {"not accepted at the last attempt: denied"}
    waiting = world.sqs.queues[ORDERED_RETRIES if is_ordered else RETRIES].messages()
    assert "later" in {message.body for message in waiting}


def test_no_copy_waits_behind_one_of_another_key_or_queue(world) -> None:
    world.bind(LOG, "#", queue="sqs:team.fifo")
    world.sqs.trouble = dict.fromkeys((QUEUE, ORDERED, QueueName("team.fifo")), "closed")
    for key in ("a", "b"):
        world.publish(LOG, key, body=key)
    world.route(LOG)
    attempts(world, is_ordered=True, seconds=500)
    world.sqs.trouble = {QueueName("team.fifo"): "closed"}

    attempts(world, is_ordered=True, seconds=90)

    assert sorted(world.bodies(ORDERED)) == ["0", "a", "b"]
    assert world.bodies("team.fifo") == []


@pytest.mark.parametrize(("queue", "is_ordered"), [(QUEUE, False), (ORDERED, True)])
def test_a_copy_is_dead_lettered_before_its_retention_ends(world, queue, is_ordered) -> None:
    world.moment = RETENTION.total_seconds() - 60

    assert world.retry(is_ordered=is_ordered).not_done == ()

    (dead,) = world.messages("q_a-dlq.fifo" if is_ordered else "q_a-dlq")
    assert dead.attributes["Reason"].text == "not accepted at the last attempt: closed"
    (head,) = world.heads.heads.values()
    assert head.detours == ({} if is_ordered else {ORDERED: 1})


@pytest.mark.parametrize(("queue", "is_ordered"), [(QUEUE, False), (ORDERED, True)])
def test_a_copy_that_sqs_refuses_is_dead_lettered_with_the_reason(world, queue, is_ordered) -> None:
    world.sqs.trouble, world.sqs.refused = {}, {"0": "InvalidMessageContents: a character"}

    routed = world.retry(is_ordered=is_ordered)

    assert routed.not_done == ()
    (dead,) = world.messages("q_a-dlq.fifo" if is_ordered else "q_a-dlq")
    assert dead.attributes["Reason"].text == "InvalidMessageContents: a character"
    assert DeliveredMessage.parse(dead).headers == {"color": "red"}
    assert [(one.kind, one.outcome, one.destination, one.attempt) for one in routed.events] == [
        ("dead_letter", "dead", queue, 2)
    ]
    assert world.counters.of_queue(queue) == {"retried": 1, "dead": 1}
    (head,) = world.heads.heads.values()
    assert head.detours == ({} if is_ordered else {ORDERED: 1})


def test_a_refused_copy_that_cannot_be_dead_lettered_is_tried_again(world) -> None:
    world.sqs.trouble = {QueueName("q_a-dlq"): "closed", DEAD: "closed"}
    world.sqs.refused = {"0": "InvalidMessageContents"}

    assert len(world.retry().not_done) == 1

    world.moment += VISIBILITY
    world.sqs.trouble, world.sqs.refused = {}, {}
    world.retry()
    assert world.bodies(QUEUE) == ["0"]


def test_behind_a_copy_that_is_not_taken_those_of_its_key_wait(world) -> None:
    for body in ("1", "2"):
        world.publish(LOG, "a", body=body)
    world.publish(LOG, "b", body="other")
    world.route(LOG)
    world.sqs.trouble = {}
    world.sqs.refused = {"0": None}  # for now

    routed = world.retry(is_ordered=True)

    assert len(routed.not_done) == 3
    assert world.bodies(ORDERED) == ["other"]
    world.sqs.refused = {}
    world.moment += VISIBILITY
    world.retry(is_ordered=True)
    assert world.bodies(ORDERED) == ["other", "0", "1", "2"]


def test_a_publication_that_was_received_often_does_not_end_the_first_attempt_of_a_copy(world) -> None:
    """A function that is killed receives it again."""
    world.publish("xs", "a", body="often")
    world.sqs.queues[NAMES.queue("xs")].entries[-1].receives = 9
    world.sqs.trouble = {QUEUE: "missing"}
    world.route("xs")
    world.sqs.trouble = {}

    world.retry()

    assert "often" in world.bodies(QUEUE)
    assert world.bodies("q_a-dlq") == []


@pytest.mark.parametrize(("queue", "is_ordered"), [(QUEUE, False), (ORDERED, True)])
def test_a_copy_whose_declared_queue_sqs_does_not_know_is_dead_lettered_at_the_fifth_attempt(
    world, queue, is_ordered
) -> None:
    world.sqs.trouble = {queue: "missing"}
    place = "q_a-dlq.fifo" if is_ordered else "q_a-dlq"
    for _ in range(ATTEMPTS_WITHOUT_QUEUE - 2):
        assert len(world.retry(is_ordered=is_ordered).not_done) == 1
        world.moment += LONGEST_PAUSE.total_seconds()

    assert world.retry(is_ordered=is_ordered).not_done == ()

    (dead,) = world.messages(place)
    assert dead.attributes["Reason"].text == f"queue {queue!r} does not exist in SQS at attempt 5"


def test_copies_for_a_deleted_queue_are_dead_lettered_at_once(world) -> None:
    world.delete(QUEUE)

    assert world.retry().not_done == ()

    (dead,) = world.sqs.queues[DEAD].messages()
    assert dead.attributes["Reason"].text == "queue 'q_a' is not declared any more"


@pytest.mark.parametrize(("queue", "is_ordered"), [(QUEUE, False), (ORDERED, True)])
def test_a_copy_does_not_reach_a_later_queue_of_the_same_name(world, queue, is_ordered) -> None:
    """It may belong to a user who may not read the exchange."""
    world.delete(queue)
    world.moment = 61  # SQS creates no queue of this name before
    world.bind("xs", "never", queue=queue)
    world.sqs.trouble = {}

    assert world.retry(is_ordered=is_ordered).not_done == ()

    assert world.bodies(queue) == []
    (dead,) = world.sqs.queues[DEAD].messages()
    assert dead.attributes["Reason"].text == f"queue '{queue}' is not declared any more"


def test_a_copy_that_waits_twice_is_done_twice(world) -> None:
    again = world.sqs.queues[RETRIES].entries[0].message
    world.sqs.queues[RETRIES].send(again)

    assert len(world.retry().not_done) == 2

    world.sqs.trouble, world.moment = {}, VISIBILITY
    assert world.retry().not_done == ()
    assert world.bodies(QUEUE) == ["0"]


def test_a_trace_survives_the_waiting(world) -> None:
    (entry,) = world.sqs.queues[RETRIES].entries
    system = {**entry.message.system_attributes, "AWSTraceHeader": "Root=1"}
    entry.message = replace(entry.message, system_attributes=system)
    world.sqs.trouble = {}

    world.retry()

    assert world.messages(QUEUE)[0].system_attributes["AWSTraceHeader"] == "Root=1"


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"retry": Attribute("Binary", None, "AA==")},
        {"retry": Attribute("String", "{")},
        {"retry": Attribute("String", "[]")},
        {"retry": Attribute("String", json.dumps({"queue": "q_a"}))},
        {"retry": Attribute("String", json.dumps({"queue": 1, "attributes": {}}))},
        {"retry": Attribute("String", json.dumps({"queue": "q_a", "attributes": {"a": 1}}))},
        {"retry": Attribute("String", json.dumps({"queue": "q_a", "attributes": {}}))},
    ],
)
def test_a_message_that_the_router_did_not_write_is_dead_lettered_with_the_reason(attributes) -> None:
    world = World()
    world.sqs.queues[RETRIES].send(Message(MessageId(""), "body", attributes, {}, {}))

    routed = world.retry()

    assert routed.not_done == ()
    (dead,) = world.sqs.queues[DEAD].messages()
    assert "is not a copy to retry" in str(dead.attributes["Reason"].text)
    assert [(one.kind, one.outcome, one.source) for one in routed.events] == [("dead_letter", "dead", None)]


def test_poison_is_dead_lettered_unread(world) -> None:
    (entry,) = world.sqs.queues[RETRIES].entries

    routed = world.retry(poison={entry.message.message_id: "it stops its reader"})

    assert routed.not_done == ()
    (dead,) = world.sqs.queues[DEAD].messages()
    assert (dead.body, dead.attributes["Reason"].text) == ("0", "it stops its reader")


def test_an_invalid_copy_that_cannot_be_dead_lettered_is_redelivered() -> None:
    world = World()
    world.sqs.queues[RETRIES].send(Message(MessageId(""), "body", {}, {}, {}))
    world.sqs.trouble = {DEAD: "closed"}

    assert len(world.retry().not_done) == 1
