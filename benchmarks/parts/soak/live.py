"""The load of live: subscribers of topics and of a prefix, and a publisher over SQS."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from benchmarks.parts.soak.accounts import Account, Arrival, DeadLetter, Stamp, account
from benchmarks.parts.soak.loads import PASSING, Sent
from signalbox.cli.exchange.stage import client_of
from signalbox.cli.shared.deployment import Deployment
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.clients.live.cursor import ReceivedEvent
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from tests.integration.live.followers import Follower
from tests.integration.live.stage import TrialRealm, new_topic
from tests.patience import wait_for

# Each area has two followers of its own: a killed function blocks only the connections of its batch for some time.
AREAS, TOPICS, CHUNK = 8, 5, 40
# Events that the slowest follower may be behind. What waits for a blocked connection is delivered in large batches.
BACKLOG = 400
RECEIVERS = 2

READY_SECONDS = 120.0


@dataclass(slots=True)
class SoakFollower(Follower):
    """A client that notes when each event of its area arrives, and is started again when it gives up."""

    area: int = 0
    name: str = ""
    arrivals: list[Arrival] = field(default_factory=list)
    failures: int = 0

    def follow(self, over: threading.Event) -> None:
        """Follow until `over`; a client that gives up is started again with the same cursors."""
        self.subscribe()
        while not over.is_set():
            try:
                self.listen(over)
            except PASSING:
                self.failures += 1
                time.sleep(1)

    def take(self, event: ReceivedEvent) -> None:
        """Note when an event arrived."""
        number = int(str(event.payload.arguments[0]))
        self.arrivals.append(Arrival(Stamp(event.topic, number), self.name, time.time()))


def publish(client: ExchangeClient, realm: str, stamps: Sequence[Stamp], sent: Sent, *, root: str) -> None:
    """Publish events in order, each until SQS has confirmed it; `root` makes their deduplication ids unique."""
    left = list(stamps)
    while left:
        requests = [PublishRequest(one.stream, str(one.number), {}, f"{root}-{one.number}") for one in left]
        at, done = time.time(), 0
        with suppress(*PASSING):
            for result in client.publish_all(realm, requests):
                if result.message_id is None:
                    break
                sent.add([left[done]], at=at)
                done += 1
        left = left[done:]


@dataclass(slots=True)
class LiveLoad:
    """Two followers of each area, one of its topics and one of its prefix, and one publisher."""

    deployment: Deployment
    place: TrialRealm
    name: str = "live"
    root: str = field(default_factory=new_topic)
    sent: Sent = field(default_factory=Sent)
    followers: list[SoakFollower] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Connect the followers."""
        for area in range(AREAS):
            exact = [TopicPattern.parse(_topic(self.root, area, number)) for number in range(TOPICS)]
            prefix = [TopicPattern.parse(f"{self.root}.a{area}.", MatchPolicy.PREFIX)]
            for patterns in (exact, prefix):
                name = f"follower {len(self.followers)}"
                self.followers.append(SoakFollower(self.place.client("subscriber"), patterns, area=area, name=name))
        for one in self.followers:
            thread = threading.Thread(target=one.follow, args=(self._over,), daemon=True)
            thread.start()
            self._threads.append(thread)
        wait_for(lambda: all(one.is_ready for one in self.followers), "the followers ready", seconds=READY_SECONDS)

    def run(self, until: Callable[[], bool], is_ahead: Callable[[], bool]) -> None:
        """Publish in order once every follower is ready."""
        client, number = client_of(self.deployment), 0
        while not until():
            if is_ahead() or self._events_behind() > BACKLOG:
                time.sleep(0.2)
                continue
            stamps = [self._stamp(one) for one in range(number, number + CHUNK)]
            number += CHUNK
            publish(client, self.place.realm, stamps, self.sent, root=self.root)

    def sent_count(self) -> int:
        """Return the number of published events."""
        return len(self.sent)

    def progress(self) -> tuple[int, int]:
        """Return the number of published events, and of those that arrived at both followers on average."""
        return self.sent_count(), sum(len(one.arrivals) for one in self.followers) // RECEIVERS

    def is_complete(self) -> bool:
        """Return whether every follower has every event of its area."""
        return all(self._sent_to(one).keys() <= {a.stamp for a in list(one.arrivals)} for one in self.followers)

    def close(self) -> None:
        """Disconnect the followers."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def accounts(self, letters: Sequence[DeadLetter]) -> Sequence[Account]:
        """Return one account for the events of all followers."""
        dead = [
            Stamp(one.attributes["topic"], int(one.body))
            for one in letters
            if one.attributes.get("topic", "").startswith(self.root)
        ]
        first, *others = (
            account("live", self._sent_to(one), one.arrivals, is_ordered=True, dead=dead) for one in self.followers
        )
        for one in others:
            first = first.plus(one)
        return [replace(first, receivers=RECEIVERS)]

    def _events_behind(self) -> int:
        """Return how many events of its area the slowest follower does not have yet."""
        return len(self.sent) // AREAS - min(len(one.arrivals) for one in self.followers)

    def _sent_to(self, follower: SoakFollower) -> dict[Stamp, float]:
        return {stamp: at for stamp, at in self.sent.times.items() if stamp.number % AREAS == follower.area}

    def _stamp(self, number: int) -> Stamp:
        return Stamp(_topic(self.root, number % AREAS, number // AREAS % TOPICS), number)


def _topic(root: str, area: int, number: int) -> str:
    return f"{root}.a{area}.t{number}"
