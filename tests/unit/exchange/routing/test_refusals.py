"""Copies of existing queues that refuse them: when they end, and what an outage never ends."""

from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.exchange.routing import refusals
from signalbox.messages import Message
from signalbox.queues import QueueName
from signalbox.sending import Batch, Delivery
from tests.unit.exchange.routing.naive_sqs import VISIBILITY
from tests.unit.exchange.routing.routing_world import DEAD, ORDERED_RETRIES, RETRIES, World

LOG = "xlog.fifo"
TEAM, ORDERED_TEAM = QueueName("team"), QueueName("team.fifo")
QUARTER = int(refusals.PATIENCE.total_seconds())


@pytest.fixture
def world() -> World:
    """Return a world in which existing queues and declared ones are bound."""
    made = World()
    made.declare("xs")
    made.declare(LOG)
    for exchange, team, queue in (("xs", TEAM, "q_a"), (LOG, ORDERED_TEAM, "q_a.fifo")):
        made.bind(exchange, "#", queue=f"sqs:{team}")
        made.bind(exchange, "#", queue=queue)
    return made


def publish(world: World, exchange: str, *bodies: str, key: str = "a") -> None:
    for body in bodies:
        world.publish(exchange, key, body=body)
    while world.route(exchange).events:
        pass


def retry_for(world: World, seconds: int, *, is_ordered: bool = False) -> None:
    for _ in range(seconds):
        world.retry(is_ordered=is_ordered)
        world.moment += 1


def see_others_taken(world: World, number: int = refusals.WITNESSES) -> None:
    """Let SQS take calls to a queue of the stage."""
    for count in range(number):
        letter = Message.parse({"MessageId": f"other-{count}", "Body": "other"})
        assert world.dispatcher.dead_letter(letter, next_to=None, reason="none")


def dead(world: World) -> list[str]:
    return [body for body in bodies(world, DEAD) if body != "other"]


def bodies(world: World, queue: QueueName) -> list[str]:
    return [message.body for message in world.sqs.queues[queue].messages()]


@pytest.mark.parametrize(("exchange", "team"), [("xs", TEAM), (LOG, ORDERED_TEAM)])
def test_a_queue_that_sqs_throttles_alone_for_a_quarter_of_an_hour_gets_its_copies_no_more(
    world, exchange, team
) -> None:
    """Its owner keeps it at its limit for 13 dollars a day."""
    world.sqs.trouble = {team: "throttled"}
    publish(world, exchange, "0", "1")

    retry_for(world, QUARTER, is_ordered=exchange == LOG)
    assert dead(world) == []
    see_others_taken(world)
    retry_for(world, 241, is_ordered=exchange == LOG)

    assert sorted(dead(world)) == ["0", "1"]


def test_a_throttle_of_the_whole_service_ends_no_copy(world) -> None:
    world.sqs.trouble = {TEAM: "throttled"}
    publish(world, "xs", "0")
    retry_for(world, QUARTER)
    world.sqs.trouble[DEAD] = "throttled"
    see = Message.parse({"MessageId": "other", "Body": "other"})
    for count in range(3 * refusals.WITNESSES):
        world.sqs.trouble[DEAD] = "throttled" if count % refusals.WITNESSES == 0 else ""
        world.dispatcher.dead_letter(see, next_to=None, reason="none")
        retry_for(world, 13)

    assert dead(world) == []
    assert bodies(world, RETRIES) == ["0"]


def test_what_sqs_took_long_ago_says_nothing_about_an_outage_now(world) -> None:
    see_others_taken(world)
    world.sqs.trouble = {TEAM: "throttled"}
    publish(world, "xs", "0")

    retry_for(world, QUARTER + 300)

    assert dead(world) == []


@pytest.mark.parametrize("trouble", ["denied", "missing"])
def test_a_dead_letter_queue_that_its_owner_lost_is_no_sign_of_an_outage(world, trouble) -> None:
    see_others_taken(world)
    world.sqs.trouble = {TEAM: "throttled", QueueName("q_a-dlq"): trouble}
    world.dispatcher.dead_letter(
        Message.parse({"MessageId": "other", "Body": "other"}), next_to=QueueName("q_a"), reason="none"
    )

    sent = world.sqs.send(Batch(TEAM, (Delivery(Message.parse({"MessageId": "", "Body": "x"}), TEAM),)))
    assert world.refusals.is_refused("sqs:team", sent)


def test_copies_of_a_key_at_their_end_take_one_try_for_ten(world) -> None:
    """One by one they end at half the speed at which they come: 28 copies a second more in than out."""
    world.sqs.trouble = {ORDERED_TEAM: "denied"}
    publish(world, LOG, *map(str, range(10)))
    world.moment = QUARTER
    world.sqs.calls.clear()

    assert world.retry(is_ordered=True).not_done == ()

    assert world.sqs.calls == [(ORDERED_TEAM, 1), (DEAD, 1), (DEAD, 9)]
    assert sorted(dead(world)) == list("0123456789")
    (head,) = world.heads.heads.values()
    assert head.detours == {}


def test_copies_behind_a_refused_one_that_came_later_wait_for_their_own_quarter_of_an_hour(world) -> None:
    world.sqs.trouble = {ORDERED_TEAM: "denied"}
    publish(world, LOG, "0", "1")
    world.moment = 60
    publish(world, LOG, "2")
    world.moment = QUARTER

    assert len(world.retry(is_ordered=True).not_done) == 1

    assert sorted(dead(world)) == ["0", "1"]
    world.sqs.trouble = {}
    world.moment += VISIBILITY
    world.retry(is_ordered=True)
    publish(world, LOG, "3")
    assert bodies(world, ORDERED_TEAM) == ["2", "3"]


def test_a_detour_stays_for_a_copy_that_could_not_be_dead_lettered(world) -> None:
    """Later messages of its key would overtake it."""
    world.sqs.trouble = {ORDERED_TEAM: "denied"}
    publish(world, LOG, "0", "1", "2")
    world.moment = QUARTER
    send, calls = world.sqs.send, []

    def fail_the_second(batch):
        calls.append(batch.destination)
        world.sqs.trouble[DEAD] = "closed" if calls.count(DEAD) == 2 else ""
        return send(batch)

    world.sqs.send = fail_the_second
    assert len(world.retry(is_ordered=True).not_done) == 2
    world.sqs.send, world.sqs.trouble = send, {}
    publish(world, LOG, "3")
    world.moment += VISIBILITY

    world.retry(is_ordered=True)

    assert dead(world) == ["0"]
    assert bodies(world, ORDERED_TEAM) == ["1", "2", "3"]


@pytest.mark.parametrize(("exchange", "team"), [("xs", TEAM), (LOG, ORDERED_TEAM)])
def test_when_too_many_copies_wait_those_of_a_queue_that_refuses_them_end_at_once(
    world, monkeypatch, exchange, team
) -> None:
    """Otherwise SQS delivers nothing more of the retry queue."""
    monkeypatch.setattr(refusals, "MOST_WAITING", 5)
    world.sqs.trouble = {team: "denied"}
    retries = ORDERED_RETRIES if exchange == LOG else RETRIES
    monkeypatch.setattr(refusals, "SPARED_FOR", timedelta(seconds=10))
    for number in range(30):
        publish(world, exchange, str(number))
        world.moment += 2

    assert len(bodies(world, retries)) <= 10
    assert len(dead(world)) >= 20
    assert len(world.messages("q_a.fifo" if exchange == LOG else "q_a")) == 30
    world.sqs.trouble = {}
    retry_for(world, 300, is_ordered=exchange == LOG)
    publish(world, exchange, "last")
    arrived = [int(one) for one in bodies(world, team)[:-1]]
    assert bodies(world, team)[-1] == "last"
    assert exchange != LOG or sorted(arrived) == arrived
    assert sorted([*arrived, *map(int, dead(world))]) == list(range(30))


@pytest.mark.parametrize(("exchange", "team"), [("xs", TEAM), (LOG, ORDERED_TEAM)])
@pytest.mark.parametrize("trouble", ["throttled", "denied"])
def test_while_the_copies_of_others_wait_a_queue_that_refuses_for_a_moment_gets_its_own(
    world, exchange, team, trouble
) -> None:
    world.refusals.waiting = lambda _: refusals.MOST_WAITING
    for body in "abc":  # each time is a new series of refusals
        see_others_taken(world)
        world.sqs.trouble = {team: trouble}
        publish(world, exchange, body)
        world.sqs.trouble = {}
        retry_for(world, 360, is_ordered=exchange == LOG)

    assert dead(world) == []
    assert bodies(world, team) == ["a", "b", "c"]


@pytest.mark.parametrize(("exchange", "team"), [("xs", TEAM), (LOG, ORDERED_TEAM)])
@pytest.mark.parametrize("trouble", ["closed", "throttled", "deaf"])
def test_an_outage_ends_no_copy_however_many_wait(world, monkeypatch, exchange, team, trouble) -> None:
    monkeypatch.setattr(refusals, "MOST_WAITING", 5)
    monkeypatch.setattr(refusals, "WITNESSES", 1_000)  # SQS has not taken as many other calls
    world.sqs.trouble = {team: trouble}
    for number in range(30):
        publish(world, exchange, str(number))
        world.moment += 2

    retry_for(world, QUARTER + 300, is_ordered=exchange == LOG)
    assert dead(world) == []
    world.sqs.trouble = {}
    retry_for(world, 400, is_ordered=exchange == LOG)

    assert sorted(map(int, bodies(world, team))) == list(range(30))


@pytest.mark.parametrize(("trouble", "tries"), [("throttled", 3), ("deaf", 3), ("missing", 1), ("denied", 1)])
def test_a_call_to_a_queue_of_the_stage_is_repeated_if_its_failure_may_pass(world, trouble, tries) -> None:
    world.sqs.trouble = {QueueName("xs-dlq"): trouble}
    dispatcher = replace(world.dispatcher, attempts=lambda: range(3))
    letter = Message.parse({"MessageId": "1", "Body": "bad"})

    assert dispatcher.dead_letter(letter, next_to=QueueName("xs"), reason="none")

    assert world.sqs.calls == [*[("xs-dlq", 1)] * tries, (DEAD, 1)]
    assert bodies(world, DEAD) == ["bad"]


def test_a_refusal_is_recorded_once_a_minute_and_counts_for_five(world) -> None:
    writes = []
    record = world.table.record_refusal

    def recorded(queue, *, at, until):
        writes.append(until - world.now())
        record(queue, at=at, until=until)

    world.table.record_refusal = recorded
    world.sqs.trouble = {TEAM: "denied"}
    for number in range(100):
        publish(world, "xs", str(number))
        world.moment += 1

    assert writes == [timedelta(minutes=5)] * 2
    assert world.table.refused_since("sqs:team", now=world.now()) == world.now() - timedelta(seconds=100)
    assert world.table.refused_since("sqs:team", now=world.now() + timedelta(minutes=6)) is None
