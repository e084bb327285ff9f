"""One round: many races of one kind at once, in which subscribers begin late, stop reading, or lose the broker."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from functools import reduce
from random import Random

from benchmarks.parts.races.accounts import Account, Race
from benchmarks.parts.races.sides import Receiver, Setting
from signalbox.errors import UnavailableError
from tests.integration.shared.tcp_proxy import TcpProxy, tcp_proxy

TOPICS, EVENTS = 5, 6
"""Of a subscriber, and of a topic."""
SUBSCRIBERS_PER_SENDER = 5
PACE_SECONDS = 0.01
"""Between two publications of a publisher."""
PAUSE_SECONDS = 5.0
"""How long a slow subscriber reads nothing."""
LOOK_SECONDS, ROUND_SECONDS = 0.2, 1_200.0


class Kind(StrEnum):
    """What happens in a round, at random numbers of published events."""

    SUBSCRIBING = "subscribing"
    """Each subscriber subscribes while its topics' events are published."""
    SLOW = "slow readers"
    """Each subscriber reads nothing for some time."""
    CUTS = "cuts"
    """Each connection of a subscriber and of a publisher is cut."""
    RESTARTS = "restarts"
    """The broker is killed and started again, twice."""


@dataclass(slots=True)
class _Subscriber:
    """A subscriber in its thread, with a race for each topic."""

    name: str
    receiver: Receiver
    line: TcpProxy
    races: dict[str, Race]
    may_begin: threading.Event = field(default_factory=threading.Event)
    is_ready: threading.Event = field(default_factory=threading.Event)
    is_slow: threading.Event = field(default_factory=threading.Event)

    def run(self, over: threading.Event) -> None:
        """Subscribe and receive until `over`."""
        self.may_begin.wait()
        self.receiver.subscribe()
        for race in self.races.values():
            race.subscribed_at = time.monotonic()
        self.is_ready.set()
        losses = self.receiver.losses
        while not over.is_set():
            if self.is_slow.is_set():
                over.wait(PAUSE_SECONDS)
                self.is_slow.clear()
            delivery = self.receiver.receive(LOOK_SECONDS)
            if losses != (losses := self.receiver.losses):
                for race in self.races.values():
                    race.sign()
            if delivery is not None:
                self.races[delivery.topic].add(delivery)
        self.receiver.close()


@dataclass(slots=True)
class _Count:
    """The number of events that all publishers have published."""

    value: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    def add(self) -> None:
        """Count an event."""
        with self.changed:
            self.value += 1
            self.changed.notify_all()

    def wait(self, value: int) -> None:
        """Wait for a number of events. Raises `UnavailableError`."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.value >= value, ROUND_SECONDS):
                raise UnavailableError(f"only {self.value} events were published in {ROUND_SECONDS:.0f} s")


@dataclass(frozen=True, slots=True)
class Plan:
    """The rounds of a run; the same plan draws the same moments."""

    seed: int
    rounds: int
    subscribers: int

    @classmethod
    def of(cls, *, seed: int, races: int, most_subscribers: int) -> "Plan":
        """Return the plan with about this number of races and as many rounds of each kind."""
        subscribers = max(min(races // len(Kind) // TOPICS, most_subscribers), 1)
        return cls(seed, max(races // len(Kind) // TOPICS // subscribers, 1) * len(Kind), subscribers)

    @property
    def races(self) -> int:
        """The number of races of a round."""
        return self.subscribers * TOPICS

    def kind(self, number: int) -> Kind:
        """Return the kind of a round."""
        return list(Kind)[number % len(Kind)]

    def topics(self, number: int) -> dict[str, list[str]]:
        """Return the topics of a round by the name of their subscriber."""
        names = [f"r{self.seed}-{number}-{subscriber}" for subscriber in range(self.subscribers)]
        return {name: [f"trial.{name}.t{topic}" for topic in range(TOPICS)] for name in names}


def race(setting: Setting, plan: Plan, number: int) -> Account:
    """Run a round of a plan and return the account of all its races."""
    chance, over, kind = Random(f"{plan.seed}-{number}"), threading.Event(), plan.kind(number)
    topics = plan.topics(number)
    setting.prepare(topics)
    with ExitStack() as lines:
        subscribers = []
        for name, own in topics.items():
            line = lines.enter_context(tcp_proxy(setting.receiver_url))
            receiver = setting.receiver(line.url(setting.receiver_url), name, own)
            subscribers.append(_Subscriber(name, receiver, line, {one: Race(setting.from_first) for one in own}))
        threads = [threading.Thread(target=one.run, args=(over,), daemon=True) for one in subscribers]
        for thread in threads:
            thread.start()
        try:
            _publish(setting, kind, subscribers, chance, lines)
            _settle(subscribers, setting.patience_seconds)
        finally:
            over.set()
        for thread in threads:
            thread.join(ROUND_SECONDS)
    return reduce(Account.plus, (one.account() for subscriber in subscribers for one in subscriber.races.values()))


def _publish(
    setting: Setting, kind: Kind, subscribers: Sequence[_Subscriber], chance: Random, lines: ExitStack
) -> None:
    """Publish all events, and let happen what the kind demands."""
    count, total = _Count(), len(subscribers) * TOPICS * EVENTS
    shares = [
        subscribers[place : place + SUBSCRIBERS_PER_SENDER]
        for place in range(0, len(subscribers), SUBSCRIBERS_PER_SENDER)
    ]
    senders = [lines.enter_context(tcp_proxy(setting.sender_url)) for _ in shares]
    if kind is not Kind.SUBSCRIBING:
        _await_all(subscribers)
    threads = [
        threading.Thread(target=_send, args=(setting, line, share, count), daemon=True)
        for line, share in zip(senders, shares, strict=True)
    ]
    for thread in threads:
        thread.start()
    acts = [
        (chance.randrange(total * 9 // 10), act)
        for act in _acts(setting, kind, subscribers, lines=[*senders, *(one.line for one in subscribers)])
    ]
    for value, act in sorted(acts, key=lambda one: one[0]):
        count.wait(value)
        act()
    count.wait(total)
    for thread in threads:
        thread.join(ROUND_SECONDS)
    _await_all(subscribers)


def _await_all(subscribers: Sequence[_Subscriber]) -> None:
    """Let all subscribe that have not, and wait for them. Raises `UnavailableError`."""
    for one in subscribers:
        one.may_begin.set()
    for one in subscribers:
        if not one.is_ready.wait(ROUND_SECONDS):
            raise UnavailableError(f"{one.name} was not subscribed within {ROUND_SECONDS:.0f} s")


def _acts(
    setting: Setting, kind: Kind, subscribers: Sequence[_Subscriber], *, lines: Sequence[TcpProxy]
) -> Iterator[Callable[[], object]]:
    """Yield the incidents of a round of this kind, as functions."""
    if kind is Kind.SUBSCRIBING:
        yield from (one.may_begin.set for one in subscribers)
    elif kind is Kind.SLOW:
        yield from (one.is_slow.set for one in subscribers)
    elif kind is Kind.CUTS:
        yield from (one.cut for one in lines)
    else:
        for _ in range(2):
            yield lambda: _restart(setting, lines)


def _restart(setting: Setting, lines: Sequence[TcpProxy]) -> None:
    """Kill the broker, with all connections, and start it again."""
    setting.restart()
    for line in lines:
        line.cut()


def _send(setting: Setting, line: TcpProxy, subscribers: Sequence[_Subscriber], count: _Count) -> None:
    """Publish the events of these subscribers, in order for each topic."""
    sender = setting.sender(line.url(setting.sender_url))
    for number in range(EVENTS):
        for topic, found in ((topic, found) for one in subscribers for topic, found in one.races.items()):
            begun = time.monotonic()
            sender.publish(topic, number)
            found.published[number] = begun
            count.add()
            time.sleep(PACE_SECONDS)
    sender.close()


def _settle(subscribers: Sequence[_Subscriber], patience_seconds: float) -> None:
    """Wait until nothing is missing, or nothing has arrived for some time."""
    races = [race for one in subscribers for race in one.races.values()]
    seen, newest = -1, time.monotonic()
    while any(one.missing() for one in races) and time.monotonic() - newest < patience_seconds:
        time.sleep(LOOK_SECONDS)
        now = sum(len(one.deliveries) for one in races)
        if now != seen:
            seen, newest = now, time.monotonic()
