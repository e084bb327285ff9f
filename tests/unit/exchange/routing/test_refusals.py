"""Copies of queues that refuse them: when they end, and what an outage never ends."""

from dataclasses import replace

import pytest

from signalbox.exchange.routing import refusals
from signalbox.messages import Message
from signalbox.queues import QueueName
from signalbox.sending import Delivery, SentBatch
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


def delivery() -> Delivery:
    return Delivery(Message.parse({"MessageId": "", "Body": "x"}), TEAM)


def dead(world: World) -> list[str]:
    return [body for body in bodies(world, DEAD) if body != "other"]


def bodies(world: World, queue: QueueName) -> list[str]:
    return [message.body for message in world.sqs.queues[queue].messages()]


@pytest.mark.parametrize(("exchange", "queue"), [("xs", TEAM), (LOG, ORDERED_TEAM), (LOG, "q_a.fifo")])
def test_a_queue_that_sqs_throttles_gets_its_copies_when_it_takes_them(world, exchange, queue) -> None:
    """A fast publisher may have it throttled, and not its owner."""
    world.sqs.trouble = {queue: "throttled"}
    publish(world, exchange, "0", "1")
    for _ in range(5):
        see_others_taken(world)
        retry_for(world, 241, is_ordered=exchange == LOG)

    world.sqs.trouble = {}
    retry_for(world, 120, is_ordered=exchange == LOG)

    assert dead(world) == []
    assert sorted(bodies(world, queue)) == ["0", "1"]


def test_in_an_outage_no_owner_has_too_many_copies(world) -> None:
    world.table.waiting["q_a"] = refusals.MOST_WAITING
    for _ in range(refusals.WITNESSES):
        assert not world.refusals.is_full("q_a")
        see_others_taken(world, 1)
    assert world.refusals.is_full("q_a")

    world.refusals.witness(SentBatch([(delivery(), None)]), is_filled_by_users=False)
    see_others_taken(world, refusals.WITNESSES - 1)

    assert not world.refusals.is_full("q_a")


def test_what_sqs_took_long_ago_says_nothing_about_an_outage_now(world) -> None:
    world.table.waiting["q_a"] = refusals.MOST_WAITING
    see_others_taken(world)
    assert world.refusals.is_full("q_a")

    world.moment = refusals.LATELY.total_seconds()

    assert not world.refusals.is_full("q_a")


@pytest.mark.parametrize("name", ["q_a", "xs"])
@pytest.mark.parametrize("trouble", ["denied", "missing", "throttled"])
def test_a_dead_letter_queue_that_users_fill_is_no_sign_of_an_outage(world, name, trouble) -> None:
    """A source has SQS throttle that of its exchange by rejected messages, and would lift the limit of its copies."""
    world.table.waiting["q_a"] = refusals.MOST_WAITING
    see_others_taken(world)
    world.sqs.trouble = {QueueName(f"{name}-dlq"): trouble}

    world.dispatcher.dead_letter(
        Message.parse({"MessageId": "other", "Body": "other"}), next_to=QueueName(name), reason="none"
    )

    assert world.refusals.is_full("q_a")


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


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let five copies of an owner be too many."""
    monkeypatch.setattr(refusals, "MOST_WAITING", 5)
    monkeypatch.setattr(refusals, "STORED_TOGETHER", 1)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("exchange", "queue", "trouble", "dead_letters"),
    [
        ("xs", TEAM, "denied", DEAD),
        (LOG, ORDERED_TEAM, "denied", DEAD),
        (LOG, ORDERED_TEAM, "throttled", DEAD),
        ("xs", "q_a", "throttled", "q_a-dlq"),
        (LOG, "q_a.fifo", "throttled", "q_a-dlq.fifo"),
    ],
)
def test_when_too_many_copies_of_an_owner_wait_new_ones_of_a_queue_that_refuses_them_end_at_once(
    world, exchange, queue, trouble, dead_letters
) -> None:
    """Otherwise SQS delivers nothing more of the retry queue, which all share."""
    see_others_taken(world)
    world.sqs.trouble = {queue: trouble}
    for number in range(30):
        publish(world, exchange, str(number))
        world.moment += 2

    ended = [int(one) for one in bodies(world, dead_letters) if one != "other"]
    assert len(ended) == 25
    assert len(bodies(world, ORDERED_RETRIES if exchange == LOG else RETRIES)) == 5
    world.sqs.trouble = {}
    retry_for(world, 300, is_ordered=exchange == LOG)
    publish(world, exchange, "last")
    arrived = [int(one) for one in bodies(world, queue)[:-1]]
    assert bodies(world, queue)[-1] == "last"
    assert exchange != LOG or sorted(arrived) == arrived
    assert sorted([*arrived, *ended]) == list(range(30))


@pytest.mark.usefixtures("few")
def test_copies_that_follow_others_faster_than_these_are_retried_end_beyond_the_number(world) -> None:
    """One failure is enough: 61 copies of a key arrive in a second, and 54 are retried."""
    see_others_taken(world)
    world.sqs.trouble = {"q_a.fifo": "missing"}
    publish(world, LOG, "0")
    world.sqs.trouble = {}
    for number in range(1, 30):
        publish(world, LOG, str(number))

    assert bodies(world, QueueName("q_a-dlq.fifo")) == [str(number) for number in range(5, 30)]
    retry_for(world, 120, is_ordered=True)
    assert bodies(world, QueueName("q_a.fifo")) == list("01234")


@pytest.mark.usefixtures("few")
def test_a_dead_letter_queue_that_sqs_throttles_too_is_tried_once(world) -> None:
    """Its message group is that of the queue; a function that tries again holds the exchange."""
    see_others_taken(world)
    world.sqs.trouble = {"q_a.fifo": "throttled"}
    publish(world, LOG, *map(str, range(7)))
    world.sqs.trouble["q_a-dlq.fifo"] = "throttled"
    world.sqs.calls.clear()
    world.dispatcher = replace(world.dispatcher, attempts=lambda: range(3))
    world.use()

    publish(world, LOG, "late")

    assert world.sqs.calls.count(("q_a-dlq.fifo", 1)) == 1
    assert dead(world) == ["late"]


@pytest.mark.usefixtures("few")
def test_all_queues_of_an_owner_share_a_number_and_those_of_others_do_not(world) -> None:
    see_others_taken(world)
    names = ["q_a_1.fifo", "q_a_2.fifo", "q_b.fifo"]
    for name in names:
        world.bind(LOG, name, queue=name)
    world.sqs.trouble = dict.fromkeys(names, "throttled")
    for name in ("q_a_1.fifo", "q_a_2.fifo", "q_b.fifo"):
        for number in range(5):
            publish(world, LOG, str(number), key=name)
            world.moment += 1

    assert [len(bodies(world, QueueName(f"{name}-dlq.fifo"))) for name in ("q_a_1", "q_a_2", "q_b")] == [0, 5, 0]


@pytest.mark.usefixtures("few")
def test_the_owner_of_a_queue_is_the_user_who_declared_it_whatever_its_name_states(world) -> None:
    """A user with loose ownership had as many numbers as names that begin with its own."""
    see_others_taken(world)
    names = ["q_a1.fifo", "q_a2.fifo"]
    for name in names:
        world.bind(LOG, name, queue=name)
        world.table.owners[name] = "a"
    world.sqs.trouble = dict.fromkeys(names, "throttled")
    for name in names:
        publish(world, LOG, *map(str, range(5)), key=name)
        world.moment += 1

    assert [len(bodies(world, QueueName(f"{name}-dlq.fifo"))) for name in ("q_a1", "q_a2")] == [0, 5]
    world.sqs.trouble = {}
    retry_for(world, 120, is_ordered=True)
    world.refusals.store()
    assert {owner: waiting for owner, waiting in world.table.waiting.items() if waiting} == {}
    assert {"q_a1", "q_a2"}.isdisjoint(world.table.waiting)


@pytest.mark.usefixtures("few")
def test_copies_that_left_the_retry_queue_make_room(world) -> None:
    see_others_taken(world)
    for body in "abc":
        world.sqs.trouble = {"q_a.fifo": "throttled"}
        publish(world, LOG, *[body] * 5)
        world.sqs.trouble = {}
        retry_for(world, 120, is_ordered=True)

    assert bodies(world, QueueName("q_a.fifo")) == [*"a" * 5, *"b" * 5, *"c" * 5]
    assert bodies(world, QueueName("q_a-dlq.fifo")) == []


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(("exchange", "team"), [("xs", TEAM), (LOG, ORDERED_TEAM), (LOG, "q_a.fifo")])
@pytest.mark.parametrize("trouble", ["closed", "throttled", "deaf"])
def test_an_outage_ends_no_copy_however_many_wait(world, monkeypatch, exchange, team, trouble) -> None:
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


def test_waiting_copies_are_stored_together(world) -> None:
    writes = []
    add = world.table.add_waiting

    def added(owner, number, *, now):
        writes.append((owner, number))
        return add(owner, number, now=now)

    world.table.add_waiting = added
    world.sqs.trouble = {TEAM: "denied"}
    for number in range(25):
        publish(world, "xs", str(number))
        world.moment += 1
    publish(world, "xs", *map(str, range(250)))
    publish(world, "xs", "last")

    assert {owner for owner, _ in writes} == {"sqs:team"}
    assert len(writes) <= 6
    assert sum(number for _, number in writes) >= 25 + 250 - refusals.STORED_TOGETHER
