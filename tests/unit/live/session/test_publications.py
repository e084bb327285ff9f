"""What sessions publish above the limit of their publisher: it is refused before it is in the queue of the realm."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from signalbox.exchange.model.records import LiveSettings, OrderBy
from signalbox.exchange.routing.limits import PERIOD_SECONDS
from signalbox.live.model.state import ConnectionId, opened
from signalbox.live.router.write_limits import ABOVE_LIMIT
from signalbox.sarracenia.rights.names import ExchangeName
from tests.fakes.live import REALM, MemoryLive
from tests.unit.live.session.conversation import ROLES, Client, published

LARGE, GOODBYE = "x" * 100_000, 6
ADMITTED, REFUSED = "published", "refused"


class Guest(Client):
    """A client without a secret, of a network."""

    def open_from(self, network: int | None, realm: str = REALM) -> "Guest":
        session = opened(self.connection, now=self.world.moment, network=network)
        assert self.world.sessions.open(session)
        (welcome,) = self.say(1, realm, {"authmethods": ["anonymous"], "roles": ROLES})
        assert welcome[0] == 2
        return self


@pytest.fixture
def world() -> MemoryLive:
    found = MemoryLive()
    found.declare(LiveSettings(anonymous="subscriber"))
    return found


def client(world: MemoryLive, name: str, user: str = "source") -> Client:
    return Client(world, ConnectionId(name)).open().join(user)


def guest(world: MemoryLive, name: str, network: int | None, realm: str = REALM) -> Guest:
    return Guest(world, ConnectionId(name)).open_from(network, realm)


def outcomes(publisher: Client, count: int, text: str = "x", topic: str = "trial.a", **options: bool) -> list[str]:
    """Publish events one by one; return the outcome of each."""
    said = (publisher.say(16, 7, {"acknowledge": True, **options}, topic, [text]) for _ in range(count))
    return [REFUSED if replies else ADMITTED for replies in said]


def test_a_publication_above_the_limit_gets_an_error_and_is_not_sent(world: MemoryLive) -> None:
    mallory = client(world, "c1")
    found = outcomes(mallory, 30, LARGE, retain=True)

    assert mallory.say(16, 9, {"acknowledge": True}, "trial.a", ["x"]) == [
        [8, 16, 9, {}, "wamp.error.unavailable", [ABOVE_LIMIT]]
    ]

    assert found == 25 * [ADMITTED] + 5 * [REFUSED]
    assert len(published(world)) == 25


def test_without_acknowledgement_it_is_dropped_and_counted(world: MemoryLive) -> None:
    mallory = client(world, "c1")
    outcomes(mallory, 30, LARGE, retain=True)

    assert mallory.say(16, 9, {}, "trial.a", ["x"]) == []

    assert (world.recorded[-1].outcome, world.recorded[-1].reason) == ("dropped", "wamp.error.unavailable")


def test_others_publish_and_the_publisher_does_in_the_next_period(world: MemoryLive) -> None:
    outcomes(mallory := client(world, "c1"), 30, LARGE, retain=True)

    assert outcomes(client(world, "c2", "admin"), 1) == [ADMITTED]
    assert outcomes(client(world, "c3"), 1) == [REFUSED]
    world.moment = world.moment.replace(second=PERIOD_SECONDS)
    assert outcomes(mallory, 1) == [ADMITTED]


@pytest.mark.parametrize(
    ("order_by", "of_one", "of_another", "elsewhere"),
    [
        (OrderBy.EXCHANGE, 1_000, 0, 0),
        (OrderBy.PUBLISHER, 1_000, 200, 0),
        (OrderBy.TOPIC, 1_000, 0, 200),
    ],
)
def test_no_publisher_takes_most_of_a_message_group(
    world: MemoryLive, order_by: OrderBy, of_one: int, of_another: int, elsewhere: int
) -> None:
    """A realm routes some 150 events of a group a second; SQS finds no group behind 120,000 waiting messages."""
    world.declare(LiveSettings(order_by))
    one, another = client(world, "c1"), client(world, "c2")

    found = [outcomes(*case) for case in ((one, 1_200), (another, 200), (one, 200, "x", "trial.b"))]

    assert [case.count(ADMITTED) for case in found] == pytest.approx([of_one, of_another, elsewhere], abs=4)


def test_strangers_of_one_network_leave_visitors_their_part(world: MemoryLive) -> None:
    first = outcomes(guest(world, "c1", 1), 20, LARGE, retain=True)
    more = outcomes(guest(world, "c2", 1), 3)

    assert (first, more) == (5 * [ADMITTED] + 15 * [REFUSED], 3 * [REFUSED])
    assert outcomes(guest(world, "c3", 2), 3) == 3 * [ADMITTED]
    assert outcomes(client(world, "c4", "subscriber"), 3) == 3 * [ADMITTED]


def test_all_strangers_of_a_realm_together_have_the_limit_of_a_publisher(world: MemoryLive) -> None:
    taken = [outcomes(guest(world, f"c{number}", number), 6, LARGE, retain=True) for number in range(7)]

    assert sum(case.count(ADMITTED) for case in taken) == 25
    assert outcomes(guest(world, "c9", None), 1) == [REFUSED]


def test_strangers_of_another_realm_have_their_own_limit(world: MemoryLive) -> None:
    other = ExchangeName("xs_other.fifo")
    world.declare(LiveSettings(anonymous="admin"), other)
    outcomes(guest(world, "c1", None, other), 30, LARGE, retain=True)

    assert outcomes(guest(world, "c2", None), 1) == [ADMITTED]


def test_meta_events_count_for_nobody(world: MemoryLive) -> None:
    watching = client(world, "c1", "admin")
    watching.say(32, 1, {}, "wamp.subscription.on_subscribe")
    calls = world.kilobytes.calls

    for number in range(200):
        watching.say(32, 2, {}, f"trial.{number}")

    assert (len(published(world)), world.kilobytes.calls) == (201, calls)


def test_a_frame_that_is_received_again_is_decided_and_counted_once(world: MemoryLive) -> None:
    mallory = client(world, "c1")
    said = [16, 7, {"acknowledge": True, "retain": True}, "trial.a", [LARGE]]

    replies = [mallory.say(*said, frame=frame) for frame in each_twice(26)]

    assert [len(one) for one in replies] == [*(50 * [0]), 1, 0]


def each_twice(count: int) -> Iterator[str]:
    return (f"f{number // 2}" for number in range(2 * count))


def subscribed(world: MemoryLive, name: str, user: str = "source", *, kilobytes: int = 40) -> Client:
    """Return a client whose record has some KB: at most 65,536 characters of topics and of groups of a token."""
    found = client(world, name, user)
    world.sessions.records[found.connection] = replace(world.sessions.records[found.connection], kilobytes=kilobytes)
    return found


def calls(caller: Client, most: int) -> int:
    """Call until the session ends; return the number of calls that were answered."""
    for number in range(most):
        ((kind, *_),) = caller.say(48, number + 1, {}, "wamp.subscription.lookup", ["a"])
        if kind == GOODBYE:
            return number
    return most


def test_large_records_of_a_user_are_written_so_often_and_then_a_session_ends(world: MemoryLive) -> None:
    """Frames that waited would fill the inbox that all sessions share."""
    mallory, second, third = (subscribed(world, name) for name in ("c1", "c2", "c3"))

    assert calls(mallory, 50) == 50
    assert calls(second, 50) == 10_000 // (4 * 40) - 50
    assert calls(client(world, "c4"), 1) == 1
    assert calls(subscribed(world, "c5", "admin"), 1) == 1
    assert (calls(mallory, 1), mallory.say(48, 1, {}, "wamp.subscription.lookup", ["a"])) == (0, [])

    world.moment = world.moment.replace(second=PERIOD_SECONDS)
    assert calls(third, 1) == 1


def test_small_records_count_nothing(world: MemoryLive) -> None:
    calls(subscribed(world, "c1", kilobytes=2), 100)

    assert world.kilobytes.amounts == {}
