"""A deny wins on every way of a message: from the publisher's queue, into realms, and into queues that are bound."""

import sys
from collections import Counter
from dataclasses import replace

import pytest

from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.records import LiveSettings, User
from signalbox.live.admin.denies import KEPT_FOR, CachedDenies, DeniesUnread, StoredDenies
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role
from tests.fakes.clock import START
from tests.fakes.exchange import MemoryUsers
from tests.fakes.grants import MemoryGrants, MemoryGroups, deny
from tests.unit.exchange.routing.naive_sqs import VISIBILITY
from tests.unit.exchange.routing.routing_world import CONTROL_ID, World
from tests.unit.exchange.routing.test_router_live import Live

REALM, OTHER = "xs_alice_lab.fifo", "xs_alice.fifo"


class Counted:
    """`DenyReader` that counts its reads, and keeps what was asked."""

    def __init__(self, reader):
        self.reader, self.reads, self.asked = reader, 0, set()

    def of(self, users):
        self.reads += 1
        self.asked |= set(users)
        return self.reader.of(users)


class Denied:
    """A realm that is bound to queues of alice and bob, and another exchange that is bound to the realm."""

    def __init__(self):
        self.world, self.grants, self.groups = World(), MemoryGrants(), MemoryGroups()
        roles = {"alice": Role.SOURCE, "bob": Role.SUBSCRIBER, "feed": Role.FEEDER}
        users = {one: User(UserName(one), role, Ownership.STRICT, START, one) for one, role in roles.items()}
        self.reader = Counted(StoredDenies(MemoryUsers(users), self.grants, self.groups))
        self.world.use(live=Live(self.world), denies=CachedDenies(self.reader, self.world.now, lambda: False))
        self.world.declare(REALM)
        self.world.declare(OTHER)
        self.make_live(REALM)
        for queue in ("q_alice_all", "q_bob", "q_bob_2.fifo", "q_archive"):
            self.world.bind(REALM, "#", queue=queue)
        self.world.table.users["AIDA"] = UserName("alice")

    def make_live(self, exchange):
        exchanges, name = self.world.table.exchanges, ExchangeName(exchange)
        exchanges[name] = replace(exchanges[name], live=LiveSettings())

    def routed(self, *keys, exchange=REALM, sender="AIDA"):
        """Publish keys; return the bodies in each queue that got any, and those of the exchange's dead letters."""
        before = {queue: len(self.world.bodies(queue)) for queue in self.world.table.queues}
        for key in keys:
            self.world.publish(exchange, key, key, sender=sender)
        assert self.world.route(exchange).not_done == ()
        found = {queue: self.world.bodies(queue)[number:] for queue, number in before.items()}
        return {queue: bodies for queue, bodies in found.items() if bodies}


@pytest.fixture
def denied():
    return Denied()


ALL = {"q_alice_all", "q_bob", "q_bob_2.fifo", "q_archive"}


@pytest.mark.parametrize("principal", ["bob", "@lab"])
def test_the_queues_of_a_denied_user_get_no_denied_topic(denied, principal):
    denied.groups.add(REALM, "lab", "bob")
    deny(denied.grants, REALM, principal, "read", "secret.")

    found = denied.routed("secret.a", "open.a")

    assert found == {queue: ["secret.a", "open.a"] for queue in ALL - {"q_bob", "q_bob_2.fifo"}} | {
        "q_bob": ["open.a"],
        "q_bob_2.fifo": ["open.a"],
    }


def test_a_deny_of_everyone_leaves_queues_that_belong_to_no_user(denied):
    deny(denied.grants, REALM, "@everyone", "read", "secret.")

    assert set(denied.routed("secret.a")) == {"q_archive"}


def test_a_deny_concerns_the_queues_that_a_user_declared(denied):
    denied.world.table.owners["q_archive"] = UserName("feed")
    deny(denied.grants, REALM, "feed", "read", "secret.")

    assert set(denied.routed("secret.a")) == ALL - {"q_archive"}


def test_a_deny_of_bound_queues_counts_within_a_minute_and_is_read_twice_a_minute(denied):
    assert set(denied.routed("secret.a")) == ALL
    deny(denied.grants, REALM, "bob", "read", "secret.")

    denied.routed("secret.b")
    assert denied.reader.reads == 1
    denied.world.moment += KEPT_FOR.total_seconds()

    assert set(denied.routed("secret.c")) == {"q_alice_all", "q_archive"}
    assert (denied.reader.reads, KEPT_FOR.total_seconds() < 60) == (2, True)


def test_a_deny_counts_on_every_way_to_a_queue(denied):
    """Through another exchange: the realm's denies for its own messages, and for those that pass through the realm."""
    denied.world.bind(REALM, "#", to=OTHER)
    denied.world.bind(OTHER, "#", queue="q_bob_3")
    deny(denied.grants, REALM, "bob", "read", "secret.")

    assert "q_bob_3" not in denied.routed("secret.a")
    assert set(denied.routed("secret.b", exchange=OTHER)) == {"q_bob_3"}

    denied.world.bind(OTHER, "#", to=REALM)
    assert set(denied.routed("secret.c", exchange=OTHER)) == {"q_bob_3", "q_alice_all", "q_archive"}


def test_a_deny_counts_in_a_realm_in_the_middle_of_a_way(denied):
    """A source feeds the realm, and bob binds an exchange of his own to it and his queue to that exchange."""
    source, own = "xs_feed.fifo", "xs_bob_own.fifo"
    for name in (source, own):
        denied.world.declare(name)
    denied.world.bind(source, "#", to=REALM)
    denied.world.bind(REALM, "#", to=own)
    denied.world.bind(own, "#", queue="q_bob_3")
    deny(denied.grants, REALM, "bob", "read", "secret.")

    assert set(denied.routed("secret.a", exchange=source)) == {"q_alice_all", "q_archive"}
    assert set(denied.routed("open.a", exchange=source)) == ALL | {"q_bob_3"}

    denied.world.bind(source, "#", to=own)
    assert set(denied.routed("secret.b", exchange=source)) == {"q_alice_all", "q_archive", "q_bob_3"}


def test_a_denied_writer_has_no_way_into_the_realm(denied):
    deny(denied.grants, REALM, "alice", "write", "secret.")
    denied.world.bind(OTHER, "#", to=REALM)
    denied.world.bind(OTHER, "#", queue="q_alice_copies")

    assert denied.routed("secret.a") == {}
    (dead,) = denied.world.messages("xs_alice_lab-dlq.fifo")
    assert dead.attributes["Reason"].text == ("user 'alice' is denied to publish to this topic of 'xs_alice_lab.fifo'")
    assert set(denied.routed("secret.b", exchange=OTHER)) == {"q_alice_copies"}
    assert set(denied.routed("open.a")) == ALL
    # Control has checked the user that it names.
    assert set(denied.routed("secret.c", sender=CONTROL_ID)) == ALL


def test_a_message_with_a_number_is_routed_to_its_end_after_a_deny(denied):
    """It is in the log, and others may have received it: without it, its topic would have a gap."""
    denied.world.live.failing = {"secret.a"}
    denied.world.publish(REALM, "secret.a", "secret.a", sender="AIDA")
    assert denied.world.route(REALM).not_done != ()
    deny(denied.grants, REALM, "alice", "write", "secret.")
    denied.world.live.failing = set()
    denied.world.moment += KEPT_FOR.total_seconds() + VISIBILITY

    assert set(denied.routed("secret.b")) == ALL
    assert denied.world.bodies("q_archive") == ["secret.a"]
    (dead,) = denied.world.messages("xs_alice_lab-dlq.fifo")
    assert dead.body == "secret.b"


def test_a_denied_writer_has_no_alternate_into_the_realm(denied):
    deny(denied.grants, REALM, "alice", "write", "secret.")
    denied.world.table.set_alternate(OTHER, REALM)

    assert denied.routed("secret.a", exchange=OTHER) == {}
    assert set(denied.routed("open.a", exchange=OTHER)) == ALL


def test_exchanges_without_a_realm_read_no_denies(denied):
    denied.world.bind(OTHER, "#", queue="q_bob")

    assert set(denied.routed("secret.a", exchange=OTHER)) == {"q_bob"}
    assert denied.reader.reads == 0


def test_a_user_is_read_once_for_all_realms_and_own_denies_where_there_are_any():
    reads = []

    class Users(MemoryUsers):
        def find_all(self, names):
            reads.extend(names)
            return super().find_all(names)

        def find(self, name):
            reads.append(name)
            return super().find(name)

    class Grants(MemoryGrants):
        def find(self, realm, principal):
            reads.append((realm, principal))
            return super().find(realm, principal)

    grants = Grants()
    for realm in (REALM, OTHER):
        deny(grants, realm, "@everyone", "read", "secret.")
    deny(grants, REALM, "bob", "read", "own.")
    users = {one: User(UserName(one), Role.SUBSCRIBER, Ownership.STRICT, START, one) for one in ("alice", "bob")}
    asked = [(realm, user) for realm in (REALM, OTHER) for user in ("alice", "bob", "gone")]
    reads.clear()

    found = StoredDenies(Users(users), grants, MemoryGroups()).of(asked)

    assert sorted(reads, key=str) == [(REALM, "bob"), "alice", "bob", "gone"]
    assert found.keys() == {one for one in asked if one[1] != "gone"}
    assert [one for one in asked if one in found and found[one].match(Right.READ, "own.a")] == [(REALM, "bob")]


@pytest.mark.parametrize(("pattern", "realms"), [("never.matches", 0), ("#", 12)])
def test_realms_that_a_user_binds_cost_the_users_of_other_queues_no_read(denied, pattern, realms):
    """A source binds a public exchange to many realms of its own, with a deny in each."""
    for number in range(12):
        name = f"xs_feed_{number}.fifo"
        denied.world.declare(name)
        denied.make_live(name)
        deny(denied.grants, name, "@everyone", "read", "secret.")
        denied.world.bind(OTHER, pattern, to=name)
        denied.world.bind(name, "#", queue=f"q_feed_{number}")
    for queue in ("q_bob", "q_bob_3"):
        denied.world.bind(OTHER, "#", queue=queue)

    assert set(denied.routed("secret.a", exchange=OTHER)) == {"q_bob", "q_bob_3"}

    assert {realm for realm, _ in denied.reader.asked} == {f"xs_feed_{number}.fifo" for number in range(realms)}
    assert {user for _, user in denied.reader.asked} == ({"alice", "feed"} if realms else set())


def test_the_bindings_of_each_exchange_are_matched_once_for_a_message(denied):
    """A source binds a public exchange to many realms of its own, each to all others, and denies bob some of them."""
    realms = [f"xs_feed_{number}.fifo" for number in range(6)]
    for number, name in enumerate(realms):
        denied.world.declare(name)
        denied.make_live(name)
        denied.world.bind(OTHER, "#", to=name)
        denied.world.bind(name, "#", queue=f"q_bob_{number}")
        for other in realms:
            denied.world.bind(name, "#", to=other)
    for name in realms[:3]:
        deny(denied.grants, name, "bob", "read", "secret.")
    calls: Counter[str] = Counter()

    sys.setprofile(lambda frame, event, _argument: calls.update([frame.f_code.co_name] if event == "call" else []))
    found = denied.routed("secret.a", exchange=OTHER)
    sys.setprofile(None)

    assert found.keys() == {f"q_bob_{number}" for number in range(3, 6)}
    assert calls[BindingTrie.matching.__name__] == len([OTHER, *realms])


def test_a_queue_that_is_bound_before_and_behind_a_realm_is_refused_on_no_way_but_that_one(denied):
    denied.world.bind(OTHER, "#", to=REALM)
    denied.world.bind(OTHER, "#", queue="q_bob")
    deny(denied.grants, REALM, "bob", "read", "secret.")

    assert set(denied.routed("secret.a", exchange=OTHER)) == {"q_alice_all", "q_archive", "q_bob"}
    assert denied.reader.asked >= {(REALM, "alice"), (REALM, "bob")}


def test_the_cache_is_bounded(denied, monkeypatch):
    cached = CachedDenies(denied.reader, denied.world.now, lambda: False)
    deny(denied.grants, REALM, "bob", "read", "secret.")
    monkeypatch.setattr("signalbox.live.admin.denies.MAXIMUM_USERS", 2)

    for number in range(5):
        assert cached.of([(REALM, f"user{number}"), (REALM, "bob")]).keys() == {(REALM, "bob")}
        assert len(cached._read) == 2


def test_an_invocation_without_time_leaves_what_it_has_read_of_denies_to_the_next_one(denied):
    asked = [(REALM, f"user{number}") for number in range(250)]
    cached = CachedDenies(denied.reader, denied.world.now, lambda: denied.reader.reads >= 2)
    deny(denied.grants, REALM, "@everyone", "read", "secret.")
    with pytest.raises(DeniesUnread, match="the denies of 50 of 250 users are not read yet"):
        cached.of(asked)
    denied.reader.asked.clear()

    cached.of(asked)

    assert denied.reader.asked == set(asked[200:])
