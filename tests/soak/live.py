"""The load of live: subscribers of topics and of a prefix, whose connections are cut, and a publisher over SQS."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import reduce
from random import Random

from signalbox.cli.exchange.stage import client_of
from signalbox.clients.deployment import Deployment
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from tests.integration.live.stage import TrialRealm, new_topic
from tests.integration.shared.tcp_proxy import tcp_proxy
from tests.patience import wait_for
from tests.soak.accounts import EXAMPLES, Account, DeadLetter, Outage, Stamp, account
from tests.soak.cursors import StrictCursor
from tests.soak.followers import Follower, cutting, following
from tests.soak.loads import Sent, publish

CHUNK = 40
BETWEEN_CUTS = (5.0, 15.0)
READY_SECONDS = 1_800.0


@dataclass(frozen=True, slots=True)
class LiveSizes:
    """The size of the load. Each area has followers of its own: a kill blocks only the connections of a batch."""

    areas: int = 8
    topics: int = 5
    """Of an area."""
    followers: int = 2
    """Of an area: the first follows its prefix, the others each of its topics."""
    backlog: int = 400
    """Events that the slowest follower may be behind; those of a blocked connection are delivered in large batches."""


THOUSANDS = LiveSizes(areas=50, topics=50, followers=5, backlog=100)
"""250 connections with 10,050 subscriptions to 2,500 topics."""


@dataclass(slots=True)
class LiveLoad:
    """The followers of all areas, and one publisher."""

    deployment: Deployment
    place: TrialRealm
    chance: Random
    sizes: LiveSizes = LiveSizes()
    name: str = "live"
    root: str = field(default_factory=new_topic)
    sent: Sent = field(default_factory=Sent)
    followers: list[Follower] = field(default_factory=list)
    _cuts: Callable[[], int] = field(default=lambda: 0)
    _running: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        """Connect the followers."""
        line = self._running.enter_context(tcp_proxy(self.place.url))
        self.followers = list(self._followers(line.url(self.place.url)))
        self._running.enter_context(following(self.followers))
        wait_for(lambda: all(one.is_ready for one in self.followers), "the followers ready", seconds=READY_SECONDS)
        self._cuts = self._running.enter_context(cutting(line, between=BETWEEN_CUTS, chance=self.chance))

    def run(self, until: Callable[[], bool], is_ahead: Callable[[], bool]) -> None:
        """Publish in order once every follower is ready."""
        client, number = client_of(self.deployment), 0
        while not until():
            if is_ahead() or self._events_behind() > self.sizes.backlog:
                time.sleep(0.2)
                continue
            stamps = [self._stamp(one) for one in range(number, number + CHUNK)]
            number += CHUNK
            publish(client, self.place.realm, stamps, self.sent, mark=self.root)

    def sent_count(self) -> int:
        """Return the number of published events."""
        return len(self.sent)

    def progress(self) -> tuple[int, int]:
        """Return the number of published events, and of those that arrived at all followers of an area on average."""
        return self.sent_count(), sum(len(one.arrivals) for one in self.followers) // self.sizes.followers

    def is_complete(self) -> bool:
        """Return whether every follower has every event of its area."""
        sent = self._sent_by_area()
        return all(sent[one.area].keys() <= {a.stamp for a in list(one.arrivals)} for one in self.followers)

    def close(self) -> None:
        """Disconnect the followers."""
        self._running.close()

    def counts(self) -> Mapping[str, int]:
        """Return the numbers of cut connections, of sessions, and of events that the clients hid as redelivered."""
        return {
            "live: cuts": self._cuts(),
            "live: sessions": sum(one.client.connections for one in self.followers),
            "live: redelivered": sum(one.redelivered for one in self._cursors()),
        }

    def accounts(self, letters: Sequence[DeadLetter], outages: Sequence[Outage]) -> Sequence[Account]:
        """Return one account for the events of all followers."""
        dead = [
            Stamp(one.attributes["topic"], int(one.body))
            for one in letters
            if one.attributes.get("topic", "").startswith(self.root)
        ]
        sent = self._sent_by_area()
        counted = reduce(
            Account.plus,
            (
                account("live", sent[one.area], one.arrivals, is_ordered=True, dead=dead, outages=outages)
                for one in self.followers
            ),
        )
        wrong = [text for one in self._cursors() for text in one.violations]
        examples = (*counted.examples, *wrong)[:EXAMPLES]
        # A client hides redelivered events, so whatever the application gets twice is wrong.
        found = counted.out_of_order + counted.repeated + len(wrong)
        return [replace(counted, receivers=self.sizes.followers, out_of_order=found, examples=examples)]

    def _followers(self, url: str) -> Iterator[Follower]:
        for area in range(self.sizes.areas):
            exact = [TopicPattern.parse(self._topic(area, number)) for number in range(self.sizes.topics)]
            prefix = [TopicPattern.parse(f"{self.root}.a{area}.", MatchPolicy.PREFIX)]
            for number in range(self.sizes.followers):
                client, name = self.place.client("subscriber", url=url), f"follower {number} of area {area}"
                patterns = exact if number else prefix
                yield Follower(client, patterns, name, area)

    def _events_behind(self) -> int:
        """Return how many events of its area the slowest follower does not have yet."""
        return len(self.sent) // self.sizes.areas - min(len(one.arrivals) for one in self.followers)

    def _cursors(self) -> list[StrictCursor]:
        return [cursor for one in self.followers for cursor in one.cursors]

    def _sent_by_area(self) -> list[dict[Stamp, float]]:
        found: list[dict[Stamp, float]] = [{} for _ in range(self.sizes.areas)]
        for stamp, at in list(self.sent.times.items()):
            found[stamp.number % self.sizes.areas][stamp] = at
        return found

    def _stamp(self, number: int) -> Stamp:
        areas, topics = self.sizes.areas, self.sizes.topics
        return Stamp(self._topic(number % areas, number // areas % topics), number)

    def _topic(self, area: int, number: int) -> str:
        return f"{self.root}.a{area}.t{number}"
