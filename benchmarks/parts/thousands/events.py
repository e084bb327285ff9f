"""Events to thousands of subscriptions while functions are killed and connections are cut."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import reduce
from random import Random
from typing import Any

from benchmarks.parts.soak.accounts import Account, Stamp, account
from benchmarks.parts.soak.live import SoakFollower, publish
from benchmarks.parts.soak.loads import Sent
from benchmarks.parts.soak.run import HANDLERS
from benchmarks.parts.thousands.cursors import StrictCursor
from benchmarks.parts.thousands.functions import FunctionSampler, FunctionUse
from signalbox.cli.exchange.stage import client_of
from signalbox.cli.shared.deployment import Deployment, local_deployment
from signalbox.errors import UnavailableError
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.local.stage_folder import StageFolder
from tests.integration.live.followers import cutting, following
from tests.integration.live.stage import TrialRealm, new_topic
from tests.integration.shared.fault_injection import FaultInjector
from tests.integration.shared.tcp_proxy import tcp_proxy

FOLLOWERS_OF_A_TOPIC = 5
CHUNK = 20
BETWEEN_KILLS, BETWEEN_CUTS = (0.8, 1.2), (5.0, 15.0)
SPARED_SECONDS = 1.0  # younger instances are not killed: those that never start process nothing
READY_SECONDS, PATIENCE_SECONDS, REPORT_SECONDS, LOOK_SECONDS = 1_800.0, 300.0, 15.0, 0.2
FUNCTIONS = ("live.connect", "live.session", "live.deliver", "exchange.route")
EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Sizes:
    """The size of a round: five connections subscribe to each topic of their group."""

    connections: int = 200
    topics: int = 2_000
    events: int = 20_000
    backlog: int = 1_000
    """The most events under way: many, since a kill holds the topics of a batch for the visibility timeout."""

    @property
    def groups(self) -> int:
        """Return the number of groups of topics."""
        return max(1, self.connections // FOLLOWERS_OF_A_TOPIC)

    @property
    def topics_of_group(self) -> int:
        """Return the number of topics of a group, and of subscriptions of a connection."""
        return self.topics // self.groups


@dataclass(frozen=True, slots=True)
class EventsRound:
    """The results of a round."""

    connections: int
    subscriptions: int
    topics: int
    kills: int
    cuts: int
    sessions: int
    """Sessions that were opened: further ones than connections are reconnections."""
    redelivered: int
    """Events that arrived again with the same publication id and `_seq`, which the clients hide."""
    ready_seconds: float
    publish_seconds: float
    settle_seconds: float
    account: Account
    violations: tuple[str, ...]
    functions: tuple[FunctionUse, ...]

    @property
    def is_kept(self) -> bool:
        """Return whether each subscriber has each event once and in order."""
        return self.account.is_kept and not self.account.repeated and not self.violations

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> "EventsRound":
        """Return the round of a document that `document` returned."""
        found = {**document["account"], "examples": tuple(document["account"]["examples"])}
        functions = tuple(FunctionUse(**one) for one in document["functions"])
        changed = {
            "account": Account(**found),
            "violations": tuple(document["violations"]),
            "functions": functions,
        }
        return cls(**{**document, **changed})

    def document(self) -> dict[str, Any]:
        """Return the round for JSON."""
        return asdict(self)


@dataclass(slots=True)
class EventsLoad:
    """The connections of a round and the events that were sent to them."""

    local: Mapping[str, Any]
    folder: StageFolder
    sizes: Sizes
    say: Callable[[str], None]
    chance: Random
    root: str = field(default_factory=new_topic)
    sent: Sent = field(default_factory=Sent)
    followers: list[SoakFollower] = field(default_factory=list)

    def round(self) -> EventsRound:
        """Subscribe, publish under kills, wait for what is under way, and return the results."""
        deployment, place = local_deployment(self.local), TrialRealm.of(self.local)
        place.warm_up()
        names = _functions(deployment)
        sampler = FunctionSampler(self.folder, names)
        injector = FaultInjector(self.folder, list(names.values()), SPARED_SECONDS, self.chance)
        began = time.monotonic()
        with tcp_proxy(place.url) as line, sampler.sampling():
            self.followers = list(self._followers(place, line.url(place.url)))
            with following(self.followers):
                self._wait_until_ready()
                ready = time.monotonic()
                with (
                    cutting(line, between=BETWEEN_CUTS, chance=self.chance) as cuts,
                    injector.continuous_kills(between=BETWEEN_KILLS) as kills,
                ):
                    self._publish(deployment, place.realm)
                    published = time.monotonic()
                    self._settle()
                settled = time.monotonic()
        cursors = [cursor for one in self.followers for cursor in one.cursors if isinstance(cursor, StrictCursor)]
        return EventsRound(
            connections=len(self.followers),
            subscriptions=len(cursors),
            topics=len(self._topics),
            kills=len(kills),
            cuts=cuts(),
            sessions=sum(one.client.connections for one in self.followers),
            redelivered=sum(one.redelivered for one in cursors),
            ready_seconds=round(ready - began, 1),
            publish_seconds=round(published - ready, 1),
            settle_seconds=round(settled - published, 1),
            account=self._account(),
            violations=tuple([text for one in cursors for text in one.violations][:EXAMPLES]),
            functions=tuple(sampler.uses()),
        )

    def _followers(self, place: TrialRealm, url: str) -> Iterator[SoakFollower]:
        for group in range(self.sizes.groups):
            patterns = [TopicPattern.parse(topic) for topic in self._topics_of(group)]
            for number in range(FOLLOWERS_OF_A_TOPIC):
                client = place.client("subscriber", url=url)
                name = f"follower {number} of group {group}"
                yield SoakFollower(client, patterns, cursor_type=StrictCursor, name=name)

    def _topics_of(self, group: int) -> list[str]:
        return [f"{self.root}.g{group}.t{number}" for number in range(self.sizes.topics_of_group)]

    @property
    def _topics(self) -> list[str]:
        return [topic for group in range(self.sizes.groups) for topic in self._topics_of(group)]

    def _wait_until_ready(self) -> None:
        self._wait(lambda: all(one.is_ready for one in self.followers), self._ready, patience=READY_SECONDS)
        if not all(one.is_ready for one in self.followers):
            raise UnavailableError(f"not all clients are subscribed after {READY_SECONDS:.0f} s: {self._ready()}")

    def _publish(self, deployment: Deployment, realm: str) -> None:
        """Publish to one topic after another, with a bounded number of events under way."""
        topics, number = self._topics, 0
        with client_of(deployment) as client:
            while number < self.sizes.events:
                stamps = [Stamp(topics[one % len(topics)], one) for one in range(number, number + CHUNK)]
                stamps = stamps[: self.sizes.events - number]
                publish(client, realm, stamps, self.sent, root=self.root)
                number += len(stamps)
                if not self._wait(lambda: self._under_way() < self.sizes.backlog, self._progress):
                    raise UnavailableError(f"nothing arrives for {PATIENCE_SECONDS:.0f} s: {self._progress()}")

    def _settle(self) -> None:
        self._wait(lambda: self._under_way() <= 0, self._progress)

    def _wait(self, is_so: Callable[[], bool], progress: Callable[[], str], patience: float = PATIENCE_SECONDS) -> bool:
        """Wait for a condition until nothing has changed for `patience` seconds; return whether it is true."""
        newest = reported = time.monotonic()
        seen = progress()
        while not is_so():
            time.sleep(LOOK_SECONDS)
            now, text = time.monotonic(), progress()
            if text != seen:
                newest, seen = now, text
            if now - newest > patience:
                return False
            if now - reported > REPORT_SECONDS:
                reported = now
                self.say(text)
        return True

    def _under_way(self) -> float:
        return len(self.sent) - self._arrived() / FOLLOWERS_OF_A_TOPIC

    def _arrived(self) -> int:
        return sum(len(one.arrivals) for one in self.followers)

    def _ready(self) -> str:
        return f"{sum(one.is_ready for one in self.followers)} of {len(self.followers)} connections are subscribed"

    def _progress(self) -> str:
        return f"{len(self.sent)} events sent, {self._arrived()} of {FOLLOWERS_OF_A_TOPIC * len(self.sent)} arrived"

    def _account(self) -> Account:
        """Return the account of all deliveries."""
        accounts = []
        for number, one in enumerate(self.followers):
            topics = set(self._topics_of(number // FOLLOWERS_OF_A_TOPIC))
            sent = {stamp: at for stamp, at in self.sent.times.items() if stamp.stream in topics}
            accounts.append(account("events", sent, one.arrivals, is_ordered=True))
        return reduce(Account.plus, accounts)


def _functions(deployment: Deployment) -> Mapping[str, str]:
    """Return the names in AWS of the functions to kill and to measure, by their modules."""
    pages = deployment.session().client("lambda").get_paginator("list_functions").paginate()
    handlers = {one["Handler"]: one["FunctionName"] for page in pages for one in page["Functions"]}
    found = {name: handlers.get(f"{HANDLERS}{name}.handler") for name in FUNCTIONS}
    return {name: in_aws for name, in_aws in found.items() if in_aws is not None}
