"""The router: the copies, the number of calls, and failures."""

import json
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.messages.deliveries import DeliveredMessage
from signalbox.exchange.messages.headers import file_id
from signalbox.exchange.messages.properties import MessageProperties, group_of
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing import copy_router
from signalbox.exchange.routing.batch_reader import ExchangeUnknown
from signalbox.exchange.routing.router import LEFT_FOR
from signalbox.exchange.routing.sequences import KEPT, Head, numbered
from signalbox.messages import Attribute, Message, MessageId
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from tests.unit.exchange.routing.naive_sqs import VISIBILITY
from tests.unit.exchange.routing.routing_world import (
    CONTROL_ID,
    DEAD,
    NAMES,
    ORDERED_RETRIES,
    RETENTION,
    RETRIES,
    Killed,
    World,
    copy_id,
)

LOG = "xlog.fifo"
HEAD = ExchangeName(LOG), RoutingKey("a.b")


@pytest.fixture
def world() -> World:
    """Return a world with a standard and an ordered exchange, each with two bound queues."""
    made = World()
    for exchange in ("xs", LOG):
        made.declare(exchange)
    for queue, pattern in (("q_all", "#"), ("q_a", "a.*")):
        made.bind("xs", pattern, queue=queue)
        made.bind(LOG, pattern, queue=f"{queue}.fifo")
    return made


def sequences(world: World, queue: str) -> list[int | None]:
    return [DeliveredMessage.parse(message).sequence for message in world.messages(queue)]


def happened(world: World) -> list[tuple[str, str, str | None]]:
    return [(one.kind, one.outcome, one.destination) for routed in world.routed for one in routed.events]


def reason_of(message: Message) -> str:
    return str(message.attributes["Reason"].text)


def test_each_queue_gets_one_copy_in_one_call_however_many_bindings_match(world) -> None:
    world.bind("xs", "a.b", queue="q_a")
    for number in range(5):
        world.publish("xs", "a.b", body=str(number))
    world.publish("xs", "c", body="5")

    routed = world.route("xs")

    assert routed.not_done == ()
    assert sorted(world.bodies("q_all")) == ["0", "1", "2", "3", "4", "5"]
    assert sorted(world.bodies("q_a")) == ["0", "1", "2", "3", "4"]
    assert sorted(world.sqs.calls) == [("q_a", 5), ("q_all", 6)]


def test_a_publisher_that_is_no_user_is_named_by_its_sender_id(world) -> None:
    queue = world.sqs.queues[QueueName("xs")]
    for sender in ("AROA:session", ""):
        world.publish("xs", "c")
        entry = queue.entries[-1].message
        entry.system_attributes["SenderId"] = sender

    world.route("xs")

    publishers = {DeliveredMessage.parse(message).publisher for message in world.messages("q_all")}
    assert publishers == {"AROA:session", "unknown"}
    assert world.table.looks[0][1] == {"AROA"}


def copy_of(world: World, sender: str, message: Message) -> DeliveredMessage:
    """Return the copy of a message that a sender publishes."""
    world.sqs.queues[QueueName("xs")].send(message, sender=sender)
    world.route("xs")
    return DeliveredMessage.parse(world.messages("q_all")[-1])


@pytest.mark.parametrize(
    "headers", [{}, {"publisher": "eve", "color": "red"}], ids=["plain", "with a header so called"]
)
def test_the_control_plane_names_the_publisher(world, headers) -> None:
    message = MessageProperties.of_publication("c", "body", headers).published(publisher="alice")

    copy = copy_of(world, f"{CONTROL_ID}:control", message)

    assert (copy.publisher, copy.headers) == ("alice", headers)
    assert world.table.looks[0][1] == set()


@pytest.mark.parametrize(
    ("sender", "publisher"),
    [
        ("AIDA", "bob"),
        *((sender, sender) for sender in ("AIDX", "AROAX:control", f"AROAX:{CONTROL_ID}", f"{CONTROL_ID}X:control")),
    ],
)
def test_untrusted_senders_cannot_name_another_publisher(world, sender, publisher) -> None:
    world.table.users["AIDA"] = UserName("bob")

    copy = copy_of(world, sender, MessageProperties.of_publication("c", "body").published(publisher="alice"))

    assert (copy.publisher, copy.headers) == (publisher, {"publisher": "alice"})


def test_without_a_word_of_the_control_plane_the_publisher_is_the_control_plane(world) -> None:
    copy = copy_of(world, f"{CONTROL_ID}:control", MessageProperties.of_publication("c", "body").published())

    assert copy.publisher == f"{CONTROL_ID}:control"


def test_a_user_is_looked_up_once(world) -> None:
    world.table.users["AIDA"] = UserName("alice")
    for _ in range(2):
        world.publish("xs", "c")
        world.route("xs")

    assert [senders for _, senders in world.table.looks] == [{"AIDA"}, set()]


def test_bindings_are_read_once_and_versions_in_one_look_for_each_batch(world) -> None:
    world.declare("xt")
    world.bind("xs", "t.#", to="xt")
    world.bind("xt", "#", queue="q_t")
    for _ in range(3):
        world.publish("xs", "t.1")
        world.route("xs")

    assert world.table.readings == ["xs", "xt"]
    assert [exchanges for exchanges, _ in world.table.looks] == [{"xs"}, {"xt"}, {"xs", "xt"}, {"xs", "xt"}]
    assert len(world.bodies("q_t")) == 3


def test_messages_of_an_exchange_that_is_not_declared_stay_where_they_are(world) -> None:
    world.publish("xs", "a.b")
    del world.table.exchanges["xs"]

    with pytest.raises(ExchangeUnknown, match="'xs' is not declared"):
        world.route("xs")

    assert world.bodies("xs") == ["body"]


def test_a_lifetime_is_read_again_after_a_minute(world) -> None:
    def expires() -> bool:
        world.publish("xs", "c")
        world.route("xs")
        return DeliveredMessage.parse(world.messages("q_all")[-1]).expires_at is not None

    assert not expires()
    world.table.times_to_live["q_all"] = timedelta(seconds=20)
    world.moment = 59
    assert not expires()
    world.moment = 60
    assert expires()
    world.table.times_to_live.clear()
    world.moment = 120
    assert not expires()


def test_an_unmatched_message_is_dropped_and_counted(world) -> None:
    world.table.unbind("xs", "#", "q_all")
    world.publish("xs", "c")

    routed = world.route("xs")

    assert routed.not_done == ()
    assert happened(world) == [("unrouted", "dropped", None)]
    counts = world.counters.of_exchange("xs")
    assert counts.pop("bytes") > 0
    assert counts == {"received": 1, "dropped": 1}


def test_an_unmatched_message_goes_to_the_alternate_and_is_counted(world) -> None:
    world.declare("xrest")
    world.bind("xrest", "#", queue="q_rest")
    world.declare("xpart", alternate="xrest")
    world.publish("xpart", "c")

    world.route("xpart")

    assert world.bodies("q_rest") == ["body"]
    assert happened(world) == [("unrouted", "alternate", None), ("routed", "delivered", "q_rest")]
    assert world.counters.of_exchange("xpart").items() >= {"received": 1, "alternate": 1, "routed": 1}.items()
    assert DeliveredMessage.parse(world.messages("q_rest")[0]).exchange == "xpart"


def test_a_message_without_a_routing_key_is_dead_lettered_with_the_reason(world) -> None:
    world.sqs.queues[QueueName("xs")].send(Message(MessageId(""), "body", {"a": Attribute("String", "b")}, {}, {}))

    routed = world.route("xs")

    assert routed.not_done == ()
    (dead,) = world.messages("xs-dlq")
    assert "topic: expected an attribute" in reason_of(dead)
    assert dead.attributes["a"].text == "b"
    (event,) = routed.events
    assert (event.kind, event.outcome, event.source) == ("dead_letter", "dead", "xs")
    assert "topic: expected an attribute" in str(event.reason)
    assert world.counters.of_exchange("xs")["rejected"] == 1


def test_a_message_in_another_keys_group_is_dead_lettered_without_a_number(world) -> None:
    queue = world.sqs.queues[QueueName(LOG)]
    world.publish(LOG, "a.b", body="bad")
    queue.entries[-1].message.attributes["topic"] = Attribute("String", "c.d")
    world.publish(LOG, "a.b", body="good")

    world.route(LOG)

    assert [message.body for message in world.messages("xlog-dlq.fifo")] == ["bad"]
    assert sequences(world, "q_a.fifo") == [1]


def test_a_rejected_message_that_cannot_be_dead_lettered_is_redelivered_with_its_group(world) -> None:
    queue = world.sqs.queues[QueueName(LOG)]
    for body in ("first", "bad", "last"):
        world.publish(LOG, "a.b", body=body)
    queue.entries[1].message.attributes["topic"] = Attribute("String", "c.d")
    world.sqs.trouble = {QueueName("xlog-dlq.fifo"): "closed", DEAD: "closed"}

    routed = world.route(LOG)

    assert routed.not_done == ("xlog.fifo-2", "xlog.fifo-3")
    assert world.bodies("q_a.fifo") == ["first"]


def test_where_the_dead_lie_may_be_closed_and_the_stage_s_takes_them(world) -> None:
    world.sqs.queues[QueueName("xs")].send(Message(MessageId(""), "body", {}, {}, {}))
    world.sqs.trouble = {QueueName("xs-dlq"): "closed"}

    assert world.route("xs").not_done == ()

    assert [message.body for message in world.sqs.queues[DEAD].messages()] == ["body"]


@pytest.mark.parametrize(("trouble", "tries"), [("closed", 1), ("throttled", 1), ("deaf", 2)])
def test_a_queue_that_fails_holds_up_no_other_and_gets_its_copies_later(world, trouble, tries) -> None:
    world.sqs.trouble = {QueueName("q_a"): trouble}
    for number in range(3):
        world.publish("xs", "a.b", body=str(number))

    routed = world.route("xs")

    assert routed.not_done == ()
    assert len(world.bodies("q_all")) == 3
    assert len(world.sqs.queues[RETRIES].entries) == 3
    assert sorted(world.sqs.calls) == [*[("q_a", 3)] * tries, ("q_all", 3), (RETRIES, 3)]
    assert world.counters.of_queue("q_a") == {"retried": 3}
    world.sqs.trouble = {}
    world.retry()
    assert sorted(world.bodies("q_a")) == ["0", "1", "2"]
    assert world.counters.of_queue("q_a").items() >= {"retried": 3, "received": 3}.items()
    assert [one for one in happened(world) if one[2] == "q_a"] == [
        *[("routed", "retried", "q_a")] * 3,
        *[("routed", "delivered", "q_a")] * 3,
    ]


def test_only_what_failed_is_tried_again(world) -> None:
    world.sqs.trouble = {QueueName("q_all"): "half"}
    for number in range(4):
        world.publish("xs", "c", body=str(number))

    world.route("xs")

    assert len(world.bodies("q_all")) == 2
    assert len(world.sqs.queues[RETRIES].entries) == 2


def test_a_message_whose_copy_cannot_wait_for_another_try_comes_again_for_that_copy(world) -> None:
    world.sqs.trouble = {QueueName("q_a"): "closed", RETRIES: "closed"}
    world.publish("xs", "a.b")
    world.publish("xs", "c")

    routed = world.route("xs")

    assert routed.not_done == ("xs-1",)
    world.sqs.trouble, world.moment = {}, VISIBILITY
    world.route("xs")
    assert len(world.bodies("q_a")) == 1
    assert len(world.bodies("q_all")) == 2
    assert world.counters.of_exchange("xs").items() >= {"received": 3, "redelivered": 1}.items()


def test_copies_for_a_deleted_queue_are_dead_lettered_without_a_retry(world) -> None:
    world.delete("q_a")
    world.publish("xs", "a.b")

    assert world.route("xs").not_done == ()

    (dead,) = world.sqs.queues[DEAD].messages()
    assert reason_of(dead) == "queue 'q_a' is not declared any more"
    assert DeliveredMessage.parse(dead).key == "a.b"
    assert ("dead_letter", "dead", "q_a") in happened(world)
    assert world.counters.of_queue("q_a") == {"dead": 1}


def test_copies_for_a_queue_that_sqs_does_not_know_yet_are_tried_again(world) -> None:
    queue = world.sqs.queues.pop(QueueName("q_a"))
    world.publish("xs", "a.b")

    assert world.route("xs").not_done == ()

    world.sqs.queues[QueueName("q_a")] = queue
    world.retry()
    assert world.bodies("q_a") == ["body"]


def test_a_copy_that_sqs_refuses_permanently_goes_to_the_queues_dead_letter_queue(world) -> None:
    world.sqs.refused = {"bad": "InvalidMessageContents"}
    world.publish("xs", "a.b", body="bad")

    assert world.route("xs").not_done == ()

    assert [reason_of(message) for message in world.messages("q_a-dlq")] == ["InvalidMessageContents"]
    assert [message.body for message in world.messages("q_all-dlq")] == ["bad"]


def test_copies_go_to_an_existing_queue_and_those_that_it_refuses_to_the_stages_dead_letter_queue(world) -> None:
    world.bind("xs", "orders.#", queue="sqs:mail")
    world.sqs.refused = {"bad": "InvalidMessageContents"}
    for body in ("good", "bad"):
        world.publish("xs", "orders.new", body=body)

    assert world.route("xs").not_done == ()

    assert [message.body for message in world.sqs.queues[QueueName("mail")].messages()] == ["good"]
    assert world.sqs.queues[QueueName("mail-dlq")].messages() == []
    assert "bad" in [message.body for message in world.sqs.queues[DEAD].messages()]


def test_a_copy_that_can_be_neither_delivered_nor_dead_lettered_is_redelivered(world) -> None:
    world.sqs.refused = {"bad": "InvalidMessageContents"}
    world.sqs.trouble = {QueueName("q_a-dlq"): "closed", DEAD: "closed"}
    world.publish("xs", "a.b", body="bad")

    assert world.route("xs").not_done == ("xs-1",)


def test_a_key_has_no_head_and_no_number_before_a_message_goes_to_a_queue(world) -> None:
    world.table.unbind(LOG, "#", "q_all.fifo")
    for number in range(3):
        world.publish(LOG, "b", body=str(number))
    world.publish(LOG, "a.b")

    assert world.route(LOG).not_done == ()

    assert list(world.heads.heads) == [HEAD]
    assert world.written == {"AIDA": 1}
    counts = world.counters.of_exchange(LOG)
    assert (counts["dropped"], counts["routed"]) == (3, 1)


def test_unmatched_messages_of_a_key_with_numbers_get_numbers_too(world) -> None:
    world.table.unbind(LOG, "#", "q_all.fifo")
    for change in (None, world.table.unbind, world.table.bind):
        if change is not None:
            change(LOG, "a.*", **({"queue": "q_a.fifo"} if change == world.table.bind else {"target": "q_a.fifo"}))
        world.publish(LOG, "a.b")
        world.route(LOG)

    assert sequences(world, "q_a.fifo") == [1, 3]


RETENTIONS = RETENTION * 2


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(1, 3)), max_size=8), st.integers(0, 40))
def test_the_numbers_of_a_key_rise_however_long_it_is_not_used_and_have_gaps_after_the_retentions_only(
    uses: list[tuple[float, int]], age: int
) -> None:
    world = World(moment=timedelta(days=age).total_seconds())
    world.declare(LOG)
    world.bind(LOG, "#", queue="q_all.fifo")
    gaps = 0
    for days, messages in uses:
        world.moment += timedelta(days=days).total_seconds()
        world.heads.end(now=world.now())
        gaps += timedelta(days=days) >= RETENTIONS
        for _ in range(messages):
            world.publish(LOG, "a.b")
        world.route(LOG)

    numbers = sequences(world, "q_all.fifo")
    steps = [later - earlier for earlier, later in pairwise(numbers)]
    assert all(step > 0 for step in steps)
    assert sum(step > 1 for step in steps) <= gaps
    if not age and numbers and uses[0][0] < 1:
        assert numbers[0] == 1


def test_a_head_ends_after_the_retentions_and_a_day_and_later_numbers_are_those_of_the_day(world) -> None:
    world.publish(LOG, "a.b")
    world.route(LOG)
    assert world.heads.ends == {HEAD: world.now() + 2 * RETENTION + timedelta(days=1)}

    world.moment += timedelta(days=9).total_seconds()
    world.heads.end(now=world.now())
    for _ in range(2):
        world.publish(LOG, "a.b")
    world.route(LOG)

    day = (world.now() - datetime.fromtimestamp(0, UTC)).days
    assert sequences(world, "q_a.fifo") == [1, day * 10**9 + 1, day * 10**9 + 2]


def test_a_publisher_that_changes_too_many_heads_waits_and_nobody_else(world) -> None:
    world.limited.add("mallory")
    for key, sender in (("a.b", "mallory"), ("a.c", "AIDA"), ("a.b", "AIDA"), ("a.d", "mallory"), ("a.d", "mallory")):
        world.publish(LOG, key, body=f"{key} of {sender}", sender=sender)

    routed = world.route(LOG)

    assert (world.written, world.bodies("q_a.fifo")) == ({"mallory": 2, "AIDA": 2}, ["a.c of AIDA"])
    # The second message of AIDA is behind one of mallory in its group.
    assert routed.pauses == dict.fromkeys(routed.not_done, LEFT_FOR)
    assert len(routed.not_done) == 4

    world.limited.clear()
    world.moment += LEFT_FOR.total_seconds()
    world.route(LOG)
    assert sorted(zip(world.bodies("q_a.fifo"), sequences(world, "q_a.fifo"), strict=True)) == [
        ("a.b of AIDA", 2),
        ("a.b of mallory", 1),
        ("a.c of AIDA", 1),
        ("a.d of mallory", 1),
        ("a.d of mallory", 2),
    ]


def test_a_message_that_has_its_number_is_not_limited(world) -> None:
    world.sqs.trouble = {QueueName("q_a.fifo"): "closed", ORDERED_RETRIES: "closed"}
    world.publish(LOG, "a.b")
    world.route(LOG)
    world.sqs.trouble, world.moment = {}, VISIBILITY
    world.limited.add("AIDA")

    world.route(LOG)
    world.retry(is_ordered=True)

    assert sequences(world, "q_a.fifo") == [1]


def test_messages_whose_head_is_not_stored_come_again_soon(world) -> None:
    world.heads.is_throttled = True
    world.publish(LOG, "a.b")

    routed = world.route(LOG)

    assert (len(routed.not_done), routed.pauses) == (1, dict.fromkeys(routed.not_done, LEFT_FOR))
    assert world.bodies("q_a.fifo") == []
    world.heads.is_throttled = False
    world.moment += LEFT_FOR.total_seconds()
    world.route(LOG)
    assert sequences(world, "q_a.fifo") == [1]


def test_a_message_that_comes_again_has_the_number_that_it_had(world) -> None:
    world.sqs.trouble = {QueueName("q_a.fifo"): "closed", ORDERED_RETRIES: "closed"}
    for number in range(3):
        world.publish(LOG, "a.b", body=str(number))

    assert world.route(LOG).not_done == ("xlog.fifo-1", "xlog.fifo-2", "xlog.fifo-3")

    world.sqs.trouble, world.moment = {}, VISIBILITY
    assert world.route(LOG).not_done == ()
    world.retry(is_ordered=True)
    assert world.bodies("q_a.fifo") == ["0", "1", "2"]
    assert sequences(world, "q_a.fifo") == [1, 2, 3]
    assert world.heads.heads[HEAD].detours == {}


def test_messages_of_a_key_that_another_router_holds_are_redelivered(world) -> None:
    world.publish(LOG, "a.b")
    world.publish(LOG, "c")
    world.heads.save = lambda exchange, change: change.key == "c"

    assert world.route(LOG).not_done == ("xlog.fifo-1",)

    assert [DeliveredMessage.parse(message).key for message in world.messages("q_all.fifo")] == ["c"]


def test_behind_a_copy_that_waits_all_of_its_key_wait_for_that_queue_alone(world) -> None:
    world.sqs.trouble = {QueueName("q_a.fifo"): "closed"}
    world.publish(LOG, "a.b", body="0")
    world.route(LOG)
    world.sqs.trouble = {}
    world.publish(LOG, "a.b", body="1")
    world.publish(LOG, "a.c", body="other")

    assert world.route(LOG).not_done == ()

    assert world.bodies("q_all.fifo") == ["0", "1", "other"]
    assert world.bodies("q_a.fifo") == ["other"]
    assert world.heads.heads[HEAD].detours == {"q_a.fifo": 2}
    world.retry(is_ordered=True)
    assert world.bodies("q_a.fifo") == ["other", "0", "1"]
    assert world.heads.heads[HEAD].detours == {}
    world.publish(LOG, "a.b", body="2")
    world.route(LOG)
    assert world.bodies("q_a.fifo") == ["other", "0", "1", "2"]


def test_a_detour_that_ended_while_a_batch_was_on_its_way_is_gone_on_directly(world) -> None:
    world.sqs.trouble = {QueueName("q_a.fifo"): "closed"}
    world.publish(LOG, "a.b", body="0")
    world.route(LOG)
    world.sqs.trouble = {}
    world.publish(LOG, "a.b", body="1")
    extend = world.heads.extend_detour

    def extend_after_its_end(*values, last) -> bool:
        world.retry(is_ordered=True)
        return extend(*values, last=last)

    world.heads.extend_detour = extend_after_its_end

    world.route(LOG)

    assert world.bodies("q_a.fifo") == ["0", "1"]
    assert world.sqs.queues[ORDERED_RETRIES].entries == []


def test_from_an_ordered_exchange_a_standard_queue_gets_numbers_and_no_promise_of_order(world) -> None:
    world.bind(LOG, "a.b", queue="q_plain")
    world.sqs.trouble = {QueueName("q_plain"): "closed"}
    world.publish(LOG, "a.b")

    world.route(LOG)

    assert len(world.sqs.queues[RETRIES].entries) == 1
    world.sqs.trouble = {}
    world.retry()
    assert sequences(world, "q_plain") == [1]


def test_from_a_standard_exchange_a_fifo_queue_gets_the_group_of_the_key(world) -> None:
    world.bind("xs", "a b", queue="q_fifo.fifo")
    world.publish("xs", "a b")

    world.route("xs")

    (message,) = world.messages("q_fifo.fifo")
    assert (message.group_id, message.deduplication_id) == (group_of(RoutingKey("a b")), "xs-1")


@pytest.mark.parametrize(
    ("key", "kind"), [("c", "routed"), ("unwanted", "unrouted")], ids=["a-copy", "what-nobody-wants"]
)
def test_events_name_the_publisher_without_the_session_of_a_role(world, key, kind) -> None:
    world.declare("xnobody")
    for sender in ("AROA:ann@example.org", ""):
        exchange = "xs" if kind == "routed" else "xnobody"
        world.publish(exchange, key)
        entry = world.sqs.queues[QueueName(exchange)].entries[-1].message
        entry.system_attributes["SenderId"] = sender
        world.route(exchange)

    events = [one for routed in world.routed for one in routed.events]

    assert {one.kind for one in events} == {kind}
    assert {one.labels["publisher"] for one in events} == {"AROA", "unknown"}


def test_the_event_of_a_copy_has_its_id_in_the_queue_and_the_id_of_the_announced_file(world) -> None:
    world.bind("xs", "v03.#", queue="q_files")
    world.publish("xs", "v03.obs", body='{"baseUrl": "https://a", "relPath": "obs/1.txt"}')

    routed = world.route("xs")

    (event,) = [one for one in routed.events if one.destination == "q_files"]
    assert event.labels["copy"] == copy_id("xs-1", "q_files")
    assert event.labels["file"] == file_id("/obs/1.txt")


def test_a_copy_that_is_retried_has_its_id_and_its_file_once_it_is_delivered(world) -> None:
    world.bind("xs", "v02.#", queue="q_files")
    world.sqs.trouble[QueueName("q_files")] = "closed"
    world.publish("xs", "v02.post.obs", body="20261120 https://a /obs/1%20b.txt")
    (retried,) = [one for one in world.route("xs").events if one.destination == "q_files"]
    world.sqs.trouble.clear()

    (delivered,) = world.retry().events

    assert (retried.labels.get("copy"), retried.labels["file"]) == (None, file_id("obs/1 b.txt"))
    assert delivered.labels == {**retried.labels, "copy": copy_id("xs-1", "q_files")}


def test_events_name_queues_as_they_were_declared_and_say_nothing_of_the_message_itself(world) -> None:
    world.bind("xs", "a.b", queue="q_alice.subscribe")
    world.publish("xs", "a.b", body="secret", color="crimson")

    routed = world.route("xs")

    (event,) = [one for one in routed.events if one.destination == "q_alice.subscribe"]
    assert re.fullmatch(r"routed:xs-1:q_alice_subscribe-\w+:delivered", event.event_id)
    assert (event.source, event.topic, event.message_id, event.attempt) == ("xs", "a.b", "xs-1", 1)
    assert event.latency_ms == 0
    text = json.dumps([one.to_json() for one in routed.events])
    assert "secret" not in text
    assert "crimson" not in text


def test_a_head_keeps_the_numbers_of_the_newest_messages() -> None:
    head = Head()
    for number in range(KEPT + 5):
        head = numbered(head, [MessageId(str(number))])

    assert head.sequence == KEPT + 5
    assert min(head.recent.values()) == 6
    assert numbered(head, [MessageId("24")]) is head


def test_a_head_keeps_the_number_of_a_message_that_comes_again_with_many_behind_it() -> None:
    first, *later = (MessageId(str(number)) for number in range(KEPT + 1))

    head = numbered(numbered(Head(), [first, *later[:10]]), [first, *later[10:]])

    assert (head.recent[first], head.sequence) == (1, KEPT + 1)


def test_of_a_large_exchange_only_bindings_that_may_match_are_read_and_only_once() -> None:
    world = World(maximum_words=9)
    world.declare("xs")
    for pattern in ("a.1", "b.1", "*.2", "c.d.e.f.g", ""):
        world.bind("xs", pattern, queue="q_" + (pattern or "empty"))
    for keys in (["a.1"], ["a.2", "a.1"], ["b.1"]):
        for key in keys:
            world.publish("xs", key)
        world.route("xs")

    whole, *parts = (one for one in world.table.readings if "first words" not in one)
    assert whole == "xs"
    assert sorted(parts[:4]) == ["xs: ", "xs: #", "xs: *", "xs: a"]
    assert parts[4:] == ["xs: b"]
    assert [len(world.bodies(f"q_{pattern}")) for pattern in ("a.1", "b.1", "*.2", "c.d.e.f.g")] == [2, 1, 1, 0]


def test_first_words_that_no_pattern_has_cause_as_many_reads_as_there_are_first_words() -> None:
    world = World(maximum_words=6)
    world.declare("xs")
    for pattern in ("a.1", "g.1", "m.1", "t.1"):
        world.bind("xs", pattern, queue="q_a")
    world.publish("xs", "g.1")
    world.route("xs")
    world.table.readings.clear()

    for number in range(200):
        world.publish("xs", f"{chr(97 + number % 26)}{number}.1")
        world.route("xs")

    assert len(world.table.readings) <= 4
    assert world.bodies("q_a") == ["body"]


def test_bindings_of_a_large_exchange_are_dropped_at_the_limit() -> None:
    world = World(maximum_words=2)
    world.declare("xs")
    for word in "abcd":
        world.bind("xs", word, queue=f"q_{word}")
    for key in ("a", "b", "c", "d", "a"):
        world.publish("xs", key)
        world.route("xs")

    assert world.table.readings.count("xs: a") == 2
    assert [len(world.bodies(f"q_{word}")) for word in "abcd"] == [2, 1, 1, 1]


@pytest.mark.parametrize("exchange", ["xs", LOG])
def test_poison_is_dead_lettered_unread_and_the_others_of_its_key_are_routed(world, exchange) -> None:
    for body in ("before", "poison", "behind"):
        world.publish(exchange, "a.b", body)
    _, poison, _ = world.messages(exchange)

    routed = world.route(exchange, poison={poison.message_id: "it stops its reader"})

    assert routed.not_done == ()
    (dead,) = world.messages("xlog-dlq.fifo" if exchange == LOG else "xs-dlq")
    assert (dead.body, dead.attributes["Reason"].text) == ("poison", "it stops its reader")
    assert sorted(world.bodies("q_all.fifo" if exchange == LOG else "q_all")) == ["before", "behind"]


@pytest.mark.parametrize(("exchange", "suffix"), [("xs", ""), ("xs", ".fifo"), (LOG, ".fifo")])
def test_copies_that_are_more_than_an_invocation_can_send_are_sent_by_several_each_once(world, exchange, suffix):
    queues = [f"q_many_{number}{suffix}" for number in range(9)]
    for queue in queues:
        world.bind(exchange, "many.#", queue=queue)
    world.part_copies, world.is_late = 4, True
    world.use()
    for number in range(3):
        world.publish(exchange, "many", body=str(number))
    attempts = 0

    while world.sqs.queues[NAMES.queue(exchange)].entries:
        world.route(exchange)
        attempts += 1
        world.moment += VISIBILITY
        assert sum(len(world.bodies(queue)) for queue in world.table.queues) >= min(30, 4 * attempts)

    for queue in queues:
        assert world.bodies(queue) == ["0", "1", "2"] if exchange == LOG else sorted(world.bodies(queue)) == [*"012"]
    assert {queue: world.counters.of_queue(queue)["received"] for queue in queues} == dict.fromkeys(queues, 3)


def test_a_kill_before_the_report_loses_no_event_of_a_copy(world):
    written = []

    def record(events):
        if not written:
            written.append(())
            raise Killed
        written.extend(event for event in events if event.outcome == "delivered")

    world.part_copies, world.is_late = 1, True
    world.use(record=record)
    world.publish("xs", "a.b")
    with pytest.raises(Killed):
        world.route("xs")
    for _ in range(3):
        world.moment += VISIBILITY
        world.route("xs")

    assert {event.destination for event in written[1:]} == {"q_a", "q_all"}


def test_a_large_message_ends_a_part(world, monkeypatch):
    monkeypatch.setattr(copy_router, "PART_BYTES", 1)
    world.is_late = True
    world.publish("xs", "a.b")

    assert world.route("xs").not_done == ("xs-1",)

    assert (len(world.bodies("q_a")), len(world.bodies("q_all"))) == (1, 0)


def test_a_kept_copy_is_stored_once_although_its_message_is_received_again(world):
    world.table.kept |= {"q_a", "q_all"}
    world.part_copies, world.is_late = 1, True
    world.use()
    world.publish("xs", "a.b")
    for _ in range(3):
        world.route("xs")
        world.moment += VISIBILITY

    assert [len(world.bodies(queue)) for queue in ("q_a", "q_all")] == [1, 1]
    assert len([one for one in happened(world) if one[0] == "kept"]) == 2
