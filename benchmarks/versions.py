"""The benchmark of live in two versions, in one run: `python -m benchmarks.versions --folder PATH`."""

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from benchmarks.parts.live.order import EVENTS, TOPICS, Trial, trial_on
from benchmarks.parts.versions.batches import DELAYS
from benchmarks.parts.versions.sides import Runner, Side, batch_runner, side
from benchmarks.shared.command import parser, status
from benchmarks.shared.machine import Machine, this_machine
from benchmarks.shared.report import Table, show
from signalbox.cli.shared.output import print_json
from signalbox.exchange.model.records import OrderBy
from signalbox.local.files import CHECKOUT
from signalbox.local.progress import step

PARTS = ("batches", "order")
HERE, THERE = "this version", "the other version"
ROUNDS, BATCHES = 5, 8
RATE_ROUNDS = 20  # a run takes less than a second, and single runs differ by half
SHAPES = ((1, 1), (10, 1), (10, 10))  # events and topics of a batch
SPREADS = (1, TOPICS)  # topics over which events are published
EVENTS_GOAL, TIME_GOAL, CALLS_GOAL = 2.5, 0.5, 6


@dataclass(frozen=True, slots=True)
class Batches:
    """Batches of a shape on one side: the medians of each round, in milliseconds, and the calls of AWS."""

    side: str
    events: int
    topics: int
    is_delayed: bool
    rounds: list[dict[str, float]] = field(default_factory=list)

    def median(self, what: str) -> float:
        """Return the median of the rounds."""
        return statistics.median(one[what] for one in self.rounds)


@dataclass(frozen=True, slots=True)
class Rates:
    """Events a second on one side, round by round, with `order_by topic`."""

    side: str
    topics: int
    rates: list[float] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    """Events that were missing or out of order."""


@dataclass(frozen=True, slots=True)
class Results:
    """The measurements of a run."""

    machine: Machine
    batches: Sequence[Batches] = ()
    rates: Sequence[Rates] = ()


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark, print the results and return the exit status."""
    made = parser("versions", __doc__, parts=PARTS, page="docs/live.md")
    made.add_argument("--folder", type=Path, required=True, help="a checkout of the other version, after its setup")
    options = made.parse_args(arguments)
    return status(lambda: _print(_measured(options), options))


def _measured(options: argparse.Namespace) -> Results:
    parts = set(options.only or PARTS)
    command = " ".join(["python -m benchmarks.versions", *sys.argv[1:]])
    results = Results(replace(this_machine(upstream="no other broker"), command=command))
    with ExitStack() as stack:
        sides = [
            stack.enter_context(side(name, folder, port=port))
            for name, folder, port in ((HERE, CHECKOUT, 4801), (THERE, options.folder.resolve(), 4802))
        ]
        trials = {one.name: stack.enter_context(trial_on(one.stage)) for one in sides}
        if "order" in parts:
            with step("order") as say:
                results = replace(results, rates=_rates(trials, say))
        if "batches" in parts:
            with step("batches") as say:
                results = replace(results, batches=_batches(sides, trials, say))
    return results


def _rates(trials: Mapping[str, Trial], say: Callable[[str], None]) -> list[Rates]:
    found = {(name, topics): Rates(name, topics) for topics in SPREADS for name in trials}
    for number in range(RATE_ROUNDS + 1):
        for topics in SPREADS:
            for name in list(trials)[:: 1 if number % 2 else -1]:
                say(f"round {number} of {RATE_ROUNDS}: {name}, {topics} topics")
                run = trials[name].run(OrderBy.TOPIC, topics=topics)
                if number:  # the first round warms up
                    found[name, topics].rates.append(EVENTS / run.seconds)
                    found[name, topics].faults.append(run.missing + run.out_of_order)
    return list(found.values())


def _batches(sides: Sequence[Side], trials: Mapping[str, Trial], say: Callable[[str], None]) -> list[Batches]:
    with ExitStack() as stack:
        runners = {one.name: stack.enter_context(batch_runner(one)) for one in sides}
        queues = {one.name: _queue(one, trials[one.name]) for one in sides}
        found = {
            (name, shape, is_delayed): Batches(name, *shape, is_delayed)
            for is_delayed in (False, True)
            for shape in SHAPES
            for name in runners
        }
        for number in range(ROUNDS + 1):
            say(f"round {number} of {ROUNDS}")
            for key in list(found)[:: 1 if number % 2 else -1]:
                medians = _round(runners[key[0]], queues[key[0]], *key[1], is_delayed=key[2])
                if number:
                    found[key].rounds.append(medians)
    return list(found.values())


def _round(runner: Runner, queue: Mapping[str, str], events: int, topics: int, *, is_delayed: bool) -> dict[str, float]:
    taken = runner.run(
        batches=BATCHES, events=events, topics=topics, delays=DELAYS if is_delayed else {}, topic="order.b", **queue
    )
    return {what: statistics.median(one[what] for one in taken) for what in taken[0]}


def _queue(one: Side, trial: Trial) -> dict[str, str]:
    """Return the queue of the realm that is ordered by topic, and the role that publishes for sessions."""
    session = one.stage.deployment.session()
    pages = session.client("lambda").get_paginator("list_functions").paginate()
    functions = [f for page in pages for f in page["Functions"]]
    (route,) = (f for f in functions if f["Handler"] == "lambdas.exchange.route.handler")
    variables = route["Environment"]["Variables"]
    name = f"{variables['EXCHANGE_PREFIX']}{trial.realms[OrderBy.TOPIC].name}"
    account = route["FunctionArn"].split(":")[4]
    arn = f"arn:aws:sqs:{one.stage.local['region']}:{account}:{name}"
    return {"queue_arn": arn, "role_id": variables["LIVE_SESSION_ROLE_ID"]}


def tables(results: Results) -> Iterator[Table]:
    """Yield the tables of the measured parts."""
    if results.batches:
        columns = ["batch", "version", "AWS calls", "ms to outboxes", "ms to PUBLISHED", "ms in all"]
        rows = [
            [
                f"{one.events} events, {one.topics} topics{', AWS latencies assumed' if one.is_delayed else ''}",
                one.side,
                *(f"{one.median(what):.0f}" for what in ("calls", "outboxes", "published", "all")),
            ]
            for one in results.batches
        ]
        note = (
            f"The function `route` in a process of its own on its version's stage: medians of {ROUNDS} alternating "
            f"rounds of {BATCHES} batches, for two subscribers of all topics and a publisher that waits. Assumed are "
            + ", ".join(f"{milliseconds:.0f} ms for {what}" for what, milliseconds in DELAYS.items())
            + ", in addition to the emulator's."
        )
        yield Table("A batch in both versions", columns, rows, note)
    if results.rates:
        rows = [
            [str(one.topics), one.side, f"{statistics.median(one.rates):.0f}", str(sum(one.faults))]
            for one in results.rates
        ]
        note = (
            f"{EVENTS} events by SQS, until two subscribers have the last: medians of {RATE_ROUNDS} alternating rounds."
        )
        yield Table("Events a second, ordered by topic", ["topics", "version", "events a second", "faults"], rows, note)


def targets(results: Results) -> Iterator[tuple[str, bool]]:
    """Yield each goal, and whether the run reached it."""
    by_key = {(one.events, one.topics, one.is_delayed, one.side): one for one in results.batches}
    for (events, topics, is_delayed, name), ours in by_key.items():
        if name == HERE:
            theirs = by_key[events, topics, is_delayed, THERE]
            ratio = statistics.median(
                mine["all"] / other["all"] for mine, other in zip(ours.rounds, theirs.rounds, strict=True)
            )
            delayed = " with the latencies of AWS" if is_delayed else ""
            text = f"{events} events of {topics} topics take at most {TIME_GOAL} times as long{delayed} ({ratio:.2f})"
            yield text, ratio <= TIME_GOAL
    if results.batches:
        alone = by_key[1, 1, False, HERE].median("calls")
        yield f"a publication alone makes at most {CALLS_GOAL} calls of AWS ({alone:.0f})", alone <= CALLS_GOAL
    for topics in {one.topics for one in results.rates}:
        rates = {one.side: one for one in results.rates if one.topics == topics}
        pairs = zip(rates[HERE].rates, rates[THERE].rates, strict=True)
        ratio = statistics.median(mine / other for mine, other in pairs)
        text = f"at least {EVENTS_GOAL} times as many events a second with {topics} topics ({ratio:.2f})"
        yield text, ratio >= EVENTS_GOAL
    yield "no event is missing or out of order", not any(sum(one.faults) for one in results.rates)


def _print(results: Results, options: argparse.Namespace) -> None:
    if options.json:
        print_json(asdict(results))
        return
    show(tables(results), targets(results), machine=results.machine, as_document=options.markdown)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
