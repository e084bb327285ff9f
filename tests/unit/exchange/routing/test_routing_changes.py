"""Bindings change between batches, and each batch is routed by the present ones."""

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.exchange.matching.naive_topics import is_match
from tests.unit.exchange.routing.routing_world import World

EXCHANGES = ["xa", "xb", "xc"]
QUEUES = ["q_1", "q_2", "q_3"]
exchanges = st.sampled_from(EXCHANGES)
words = st.sampled_from(["a", "b", ""])
keys = st.lists(words, max_size=3).map(".".join)
patterns = st.lists(st.one_of(words, st.sampled_from(["*", "#"])), max_size=3).map(".".join)
steps = st.one_of(
    st.tuples(st.just("bind"), exchanges, patterns, st.sampled_from([*QUEUES, *EXCHANGES])),
    st.tuples(st.just("unbind"), st.integers(0, 20)),
    st.tuples(st.just("alternate"), exchanges, st.one_of(st.none(), exchanges)),
    st.tuples(st.just("delete"), st.sampled_from(["xb", "xc"])),
    st.tuples(st.just("publish"), keys, st.integers(0, 1)),
    st.tuples(st.just("publish"), keys, st.integers(0, 1)),
)


class Declarations:
    """Declarations as simple lists, next to a world with the same declarations."""

    def __init__(self, maximum_words: int) -> None:
        self.world = World(maximum_words=maximum_words)
        self.bindings: list[tuple[str, str, str]] = []
        self.alternates: dict[str, str] = {}
        self.counts = dict.fromkeys(QUEUES, 0)
        for exchange in EXCHANGES:
            self.world.declare(exchange)
        for queue in QUEUES:  # creates the queues: nothing is published under this key
            self.world.bind("xa", "never.ever.published.so", queue=queue)

    def play(self, step: tuple) -> None:
        match step:
            case ("bind", exchange, pattern, target):
                if (exchange, pattern, target) not in self.bindings and exchange in self.world.table.exchanges:
                    self.bindings.append((exchange, pattern, target))
                    is_queue = target in QUEUES
                    self.world.bind(
                        exchange, pattern, queue=target if is_queue else None, to=None if is_queue else target
                    )
            case ("unbind", number):
                if self.bindings:
                    exchange, pattern, target = self.bindings.pop(number % len(self.bindings))
                    self.world.table.unbind(exchange, pattern, target)
            case ("alternate", exchange, alternate):
                self._alternate(exchange, alternate)
            case ("delete", exchange):
                self.world.table.exchanges.pop(exchange, None)
                self.alternates.pop(exchange, None)
                gone = [one for one in self.bindings if one[0] == exchange]
                self.bindings = [one for one in self.bindings if one not in gone]
                self.world.table.bound = [one for one in self.world.table.bound if one.exchange != exchange]
            case ("publish", key, router):
                self._publish(key, router)

    def _alternate(self, exchange: str, alternate: str | None) -> None:
        if exchange in self.world.table.exchanges:
            self.world.table.set_alternate(exchange, alternate)
            self.alternates.pop(exchange, None)
            if alternate:
                self.alternates[exchange] = alternate

    def _publish(self, key: str, router: int) -> None:
        self.world.publish("xa", key)
        self.world.route("xa", router=router)
        for queue in self.reached(key):
            self.counts[queue] += 1

    def reached(self, key: str) -> set[str]:
        """Follow all routes from an exchange until no new resource is found."""
        found, size = {"xa"}, 0
        while len(found) > size:
            size = len(found)
            for exchange in found & {*EXCHANGES}:
                matching = {to for one, pattern, to in self.bindings if one == exchange and is_match(pattern, key)}
                found = found | matching
                if not matching and exchange in self.alternates:
                    found = found | {self.alternates[exchange]}
        return found & {*QUEUES}


@given(st.lists(steps, max_size=40), st.sampled_from([0, 3, 100]))
def test_every_message_reaches_the_queues_that_are_bound_when_it_is_routed_and_no_other(
    schedule: list[tuple], maximum_words: int
) -> None:
    """With all bindings in memory, and with only those of the last keys' first words."""
    declared = Declarations(maximum_words)

    for step in schedule:
        declared.play(step)
        arrived = {queue: len(declared.world.messages(queue)) for queue in QUEUES}
        assert arrived == declared.counts
