"""Copies of queues that refuse them: when they end, and what an outage never ends."""

from collections import Counter
from dataclasses import replace

import pytest

from signalbox.exchange.messages.copies import Copy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing import refusals
from signalbox.exchange.routing.copy_dispatcher import NewDeadLetter
from signalbox.messages import Message, MessageId
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName
from signalbox.sending import Delivery, SentBatch
from tests.unit.exchange.routing.naive_sqs import START, VISIBILITY
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
        assert not world.dispatcher.dead_letter({MessageId(str(count)): letter()})


def letter(name: str | None = None) -> NewDeadLetter:
    return NewDeadLetter(
        Message.parse({"MessageId": "other", "Body": "other"}), "none", QueueName(name) if name else None
    )


def one_copy(number: int = 0, exchange: str = "xs") -> Copy:
    """Return a copy for the queue of a user."""
    publisher = {"publisher": {"DataType": "String", "StringValue": "mallory"}}
    message = Message.parse({"MessageId": str(number), "Body": "x", "MessageAttributes": publisher})
    return Copy("q_a", "q_a", message, 1, ExchangeName(exchange), RoutingKey("a"), None, START)


def is_full(world: World) -> bool:
    """Return whether no further copy for a queue of the user may wait."""
    ended = world.refusals.reserve([one_copy()])
    world.refusals.count([] if ended else [one_copy()], -1)
    return bool(ended)


def waiting(world: World, owner: str = "q_a") -> int:
    """Return the stored number of an owner's waiting copies."""
    world.refusals.flush()
    return sum(world.table.waiting[owner].values())


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
    world.table.waiting["q_a"] = Counter([0] * refusals.MOST_WAITING)
    for _ in range(refusals.WITNESSES):
        assert not is_full(world)
        see_others_taken(world, 1)
    assert is_full(world)

    world.refusals.witness(SentBatch([(delivery(), None)]), is_filled_by_users=False)
    see_others_taken(world, refusals.WITNESSES - 1)

    assert not is_full(world)


def test_what_sqs_took_long_ago_says_nothing_about_an_outage_now(world) -> None:
    world.table.waiting["q_a"] = Counter([0] * refusals.MOST_WAITING)
    see_others_taken(world)
    assert is_full(world)

    world.moment = refusals.LATELY.total_seconds()

    assert not is_full(world)


@pytest.mark.parametrize("name", ["q_a", "xs"])
@pytest.mark.parametrize("trouble", ["denied", "missing", "throttled"])
def test_a_dead_letter_queue_that_users_fill_is_no_sign_of_an_outage(world, name, trouble) -> None:
    """A source has SQS throttle that of its exchange by rejected messages, and would lift the limit of its copies."""
    world.table.waiting["q_a"] = Counter([0] * refusals.MOST_WAITING)
    see_others_taken(world)
    world.sqs.trouble = {QueueName(f"{name}-dlq"): trouble}

    world.dispatcher.dead_letter({MessageId("other"): letter(name)})

    assert is_full(world)


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
    """Let five copies of an exchange for an owner be too many."""
    monkeypatch.setattr(refusals, "MOST_WAITING", 10)
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
    assert waiting(world) == 0
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
def test_a_call_to_a_queue_that_no_user_fills_is_repeated_if_its_failure_may_pass(world, trouble, tries) -> None:
    """Users have SQS throttle the others, and would hold the functions of all publishers."""
    world.sqs.trouble = {QueueName("xs-dlq"): trouble, DEAD: trouble}
    dispatcher = replace(world.dispatcher, attempts=lambda: range(3))

    assert dispatcher.dead_letter({MessageId("1"): letter("xs")}) == {"1"}

    assert world.sqs.calls == [("xs-dlq", 1), *[(DEAD, 1)] * tries]


def writes_of(world: World) -> list[tuple[str, int]]:
    """Return a list to which each write of numbers adds the owner, and by how many the number changes."""
    writes, add = [], world.table.add_waiting

    def added(owner, changes, *, now):
        writes.append((owner, sum(changes.values())))
        return add(owner, changes, now=now)

    world.table.add_waiting = added
    return writes


def test_waiting_copies_are_stored_together(world) -> None:
    writes = writes_of(world)
    world.sqs.trouble = {TEAM: "denied"}
    for number in range(25):
        publish(world, "xs", str(number))
        world.moment += 1
    publish(world, "xs", *map(str, range(250)))
    publish(world, "xs", "last")

    assert {owner for owner, _ in writes} == {"sqs:team"}
    assert len(writes) <= 6
    assert sum(number for _, number in writes) >= 25 + 250 - refusals.STORED_TOGETHER


@pytest.fixture
def hundred(world, monkeypatch) -> World:
    """Return a world with twenty queues of a user that SQS throttles, of which 50 copies from one exchange may wait."""
    monkeypatch.setattr(refusals, "MOST_WAITING", 100)
    monkeypatch.setattr(refusals, "STORED_TOGETHER", 20)
    see_others_taken(world)
    for number in range(20):
        for exchange in ("xs", LOG):
            world.bind(exchange, "many.#", queue=f"q_a_{number}.fifo")
        world.sqs.trouble[QueueName(f"q_a_{number}.fifo")] = "throttled"
    return world


@pytest.mark.parametrize("exchange", ["xs", LOG])
def test_copies_in_the_hands_of_a_function_count_before_they_are_sent(hundred, exchange) -> None:
    """200 copies of a batch waited, although there was no place for them."""
    for number in range(20):
        hundred.publish(exchange, f"many.{number}", body=str(number))
    for _ in range(2):
        hundred.route(exchange)

    assert len(bodies(hundred, ORDERED_RETRIES if exchange == LOG else RETRIES)) == 50
    assert waiting(hundred) == 50


def test_function_instances_that_find_the_same_places_do_not_all_take_them(hundred) -> None:
    copies = [one_copy(number) for number in range(200)]
    others = refusals.Refusals(hundred.table, hundred.now, lambda: hundred.retrying)
    for _ in range(refusals.WITNESSES):
        others.witness(SentBatch(), is_filled_by_users=False)
    for instance in (hundred.refusals, others):
        assert not instance.reserve(copies[:1])  # both know that nothing waits

    ended = [len(instance.reserve(copies)) for instance in (hundred.refusals, others)]

    assert ended == [151, 200]


def test_numbers_that_killed_functions_left_end_no_copy(hundred) -> None:
    """A few thousand copies waited, and valid ones became dead letters."""
    hundred.refusals.reserve([one_copy(number) for number in range(200)])  # a kill before they are sent
    hundred.refusals.flush()
    hundred.retrying = refusals.MOST_WAITING // 2 - 1
    hundred.moment += refusals.STORED_EVERY.total_seconds()

    assert not hundred.refusals.reserve([one_copy(200)])

    hundred.retrying += 1
    assert not hundred.refusals.reserve([one_copy(201)])  # the number of messages is some seconds old
    hundred.moment += refusals.STORED_EVERY.total_seconds()
    assert len(hundred.refusals.reserve([one_copy(202)])) == 1


def test_copies_from_one_exchange_leave_places_to_those_from_others(hundred) -> None:
    """Its publishers are fast, and took the retries of all queues of a subscriber."""
    places = []
    for exchange in ("xa", "xb", "xc", "xa"):
        copies = [one_copy(number, exchange) for number in range(200)]
        places.append(200 - len(hundred.refusals.reserve(copies)))

    assert places == [50, 25, 12, 0]


@pytest.mark.parametrize("ends", ["the detour", "the retry queue"])
def test_a_place_that_a_copy_does_not_take_is_free_again(hundred, ends) -> None:
    hundred.publish(LOG, "many.a")
    hundred.route(LOG)
    assert waiting(hundred) == 20
    if ends == "the detour":
        hundred.sqs.trouble = {}
        hundred.heads.extend_detour = lambda *_, last: False
    else:
        hundred.sqs.trouble = {ORDERED_RETRIES: "closed"}

    hundred.publish(LOG, "many.a")
    hundred.route(LOG)

    assert waiting(hundred) == 20


def test_each_attempt_states_that_its_copy_still_waits(world) -> None:
    """Numbers that nothing changed for an hour are forgotten, and as many copies more could wait."""
    world.sqs.trouble = {QueueName("q_a"): "throttled"}
    publish(world, "xs", "0")
    assert waiting(world) == 1
    writes = writes_of(world)

    for _ in range(2):
        world.moment += 100
        assert world.retry().not_done

    assert writes == [("q_a", 0), ("q_a", 0)]


def test_while_the_table_takes_no_numbers_a_few_copies_wait_and_no_batch_does(hundred) -> None:
    """It throttles the item of an owner, who would otherwise have no limit, or an attacker the whole table."""
    hundred.refusals.reserve([one_copy()])
    writes, hundred.table.is_throttled = writes_of(hundred), True
    hundred.moment = 60

    ended = [len(hundred.refusals.reserve([one_copy(number) for number in range(8)])) for _ in range(4)]

    assert ended == [0, 0, 5, 8]
    assert len(writes) == 1
    hundred.table.is_throttled, hundred.moment = False, 61
    assert hundred.refusals.reserve([one_copy()]) == []
    assert waiting(hundred) == 21


def test_detours_are_started_and_extended_in_parallel(hundred) -> None:
    """Of ten messages for a hundred queues, they take six seconds one by one."""
    calls: list[list[QueueName]] = []

    def parallel_map(function, values):
        values = list(values)
        calls.append([one.destination for one in values])
        return list(map(function, values))

    router = hundred.routers[0]
    hundred.routers[0] = replace(router, copies=replace(router.copies, parallel_map=parallel_map))
    for _ in range(2):
        hundred.publish(LOG, "many.a")
        hundred.route(LOG)

    queues = sorted(f"q_a_{number}.fifo" for number in range(20))
    assert calls == [[], queues, queues, []]
    (head,) = hundred.heads.heads.values()
    assert head.detours == dict.fromkeys(queues, 2)


@pytest.mark.parametrize("exchange", ["xs", LOG])
def test_dead_letters_of_many_queues_take_a_call_for_ten(hundred, exchange) -> None:
    """One by one, with two calls each if SQS throttles their dead-letter queues, too, they end a function of others."""
    hundred.table.waiting["q_a"] = Counter([0] * refusals.MOST_WAITING)
    hundred.sqs.trouble |= {QueueName(f"q_a_{number}-dlq.fifo"): "throttled" for number in range(20)}
    for number in range(10):
        hundred.publish(exchange, f"many.{number}", body=str(number))
    hundred.sqs.calls.clear()

    hundred.route(exchange)

    assert len(dead(hundred)) == 200
    queues = [f"q_a_{number}{kind}.fifo" for number in range(20) for kind in ("", "-dlq")]
    assert Counter(call for call in hundred.sqs.calls if call[0] in (*queues, DEAD)) == Counter(
        (queue, 10) for queue in (*queues, *[DEAD] * 20)
    )
