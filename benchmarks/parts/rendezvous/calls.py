"""The benchmark of SQS calls: the calls of a broker per rendezvous, including cleanup, and while idle."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from benchmarks.parts.rendezvous.clients import Clients, Exchange
from benchmarks.parts.rendezvous.original import Programs, running_broker
from benchmarks.parts.rendezvous.proxies import polling
from benchmarks.parts.rendezvous.timing import AT_ONCE, PROXIES
from benchmarks.shared.counting import Tap, tapped
from benchmarks.shared.sides import Side
from benchmarks.shared.stage import Stage
from signalbox.errors import UnavailableError

# The numbers of concurrent rendezvous. All are counted; the first bursts are small, since function instances start.
BURSTS = (1, 1, 2, 5, 10, AT_ONCE, 1, 1, 1, 1)
# Both brokers delete a client's queue after at least two minutes, on a schedule of at most one minute.
CLEANUP_SECONDS = 300
LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one broker: `busy` until its last client queue was deleted, then `idle`."""

    rendezvous: int
    right: int
    """The number of rendezvous with the right answer."""
    busy: Mapping[str, int]
    busy_seconds: float
    idle: Mapping[str, int]
    idle_seconds: float
    client: Mapping[str, int]
    by_caller: Mapping[str, Mapping[str, int]]
    """The busy calls to all services, by caller."""

    @property
    def per_rendezvous(self) -> float:
        """The broker's SQS calls per rendezvous."""
        return sum(self.busy.values()) / self.rendezvous

    @property
    def idle_per_minute(self) -> float:
        """The broker's SQS calls per minute without clients."""
        return sum(self.idle.values()) * 60 / self.idle_seconds


@dataclass(frozen=True, slots=True)
class _Watched:
    """A broker whose AWS calls pass through counting proxies."""

    side: Side
    taps: Mapping[str, Tap]

    def sqs_calls(self) -> Counter[str]:
        return sum((tap.sqs_calls() for tap in self.taps.values()), Counter())

    def all_calls(self) -> dict[str, Mapping[str, int]]:
        return {caller: dict(tap.calls) for caller, tap in self.taps.items() if tap.calls}


def count(
    stage: Stage, programs: Programs | None, clients: Clients, *, idle_seconds: float, say: Callable[[str], None]
) -> dict[str, Calls]:
    """Count the calls of both brokers; afterwards Signalbox's functions still call through the counting proxies."""
    with ExitStack() as stack:
        say("starting with counting proxies")
        watched = [stack.enter_context(_signalbox(stage))]
        if programs is not None:
            watched.append(stack.enter_context(_upstream(stage, programs)))
        started = time.monotonic()
        exchanges = {w.side.name: _rendezvous(w.side, clients, say) for w in watched}
        _await_cleanup(stage, [w.side for w in watched], say)
        busy_seconds = time.monotonic() - started
        busy = {w.side.name: (w.sqs_calls(), w.all_calls()) for w in watched}
        say(f"idle for {idle_seconds:.0f} s")
        time.sleep(idle_seconds)
        return {
            w.side.name: _calls(
                exchanges[w.side.name],
                busy=busy[w.side.name],
                busy_seconds=busy_seconds,
                idle=w.sqs_calls() - busy[w.side.name][0],
                idle_seconds=idle_seconds,
            )
            for w in watched
        }


def _calls(
    exchanges: Sequence[Exchange],
    *,
    busy: tuple[Counter[str], Mapping[str, Mapping[str, int]]],
    busy_seconds: float,
    idle: Counter[str],
    idle_seconds: float,
) -> Calls:
    client = sum((Counter(exchange.calls) for exchange in exchanges), Counter[str]())
    return Calls(
        rendezvous=len(exchanges),
        right=sum(exchange.is_right for exchange in exchanges),
        busy=dict(busy[0]),
        busy_seconds=busy_seconds,
        idle=dict(idle),
        idle_seconds=idle_seconds,
        client=dict(client),
        by_caller=busy[1],
    )


@contextmanager
def _signalbox(stage: Stage) -> Iterator[_Watched]:
    side = stage.signalbox()
    with ExitStack() as stack:
        taps = {}
        for short, name in stage.functions().items():
            taps[short] = stack.enter_context(tapped(side.endpoint_url))
            stage.redirect(name, taps[short].endpoint_url)
        yield _Watched(side, taps)


@contextmanager
def _upstream(stage: Stage, programs: Programs) -> Iterator[_Watched]:
    side = stage.upstream()
    with tapped(side.endpoint_url) as tap, running_broker(programs, side, endpoint_url=tap.endpoint_url) as running:
        yield _Watched(running, {"broker": tap})


def _rendezvous(side: Side, clients: Clients, say: Callable[[str], None]) -> list[Exchange]:
    say(f"counting {side.name}")
    with polling(side.broker_url, PROXIES) as pool:
        exchanges: list[Exchange] = []
        for at_once in BURSTS:
            pool.settle()
            exchanges += clients(side, at_once, at_once)
        return exchanges


def _await_cleanup(stage: Stage, sides: Sequence[Side], say: Callable[[str], None]) -> None:
    deadline = time.monotonic() + CLEANUP_SECONDS
    while left := sum(len(stage.client_queues(side)) for side in sides):
        if time.monotonic() > deadline:
            raise UnavailableError(f"{left} client queues still exist after {CLEANUP_SECONDS} s")
        say(f"waiting until the last {left} client queues are deleted")
        time.sleep(LOOK_SECONDS)
