"""Thousands on one stage: users who join, and events to subscriptions under kills: `python -m benchmarks.thousands`.

Each round of events has a stage of its own and ends as a line of the file of results, so that a run that is
interrupted continues after its last round.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random

from benchmarks.parts.soak.accounts import Account
from benchmarks.parts.thousands import users as thousands_users
from benchmarks.parts.thousands.events import FOLLOWERS_OF_A_TOPIC, EventsLoad, EventsRound, Sizes
from benchmarks.parts.thousands.functions import FunctionUse
from benchmarks.parts.thousands.users import Counts, Step, UsersResult
from benchmarks.shared.command import parser, status
from benchmarks.shared.headlines import Headline, keep
from benchmarks.shared.machine import Machine, this_machine
from benchmarks.shared.report import Table, show
from benchmarks.shared.stage import FOLDER, running_stage
from signalbox.cli.shared.output import print_json
from signalbox.local.progress import step
from signalbox.local.stage_folder import StageFolder

PARTS = ("users", "events")
RESULTS = FOLDER / "thousands.jsonl"
SEED = 1
SIZES, COUNTS = Sizes(), Counts()


@dataclass(frozen=True, slots=True)
class Results:
    """The measurements of a run, with the rounds of earlier runs into the same file."""

    machine: Machine
    users: UsersResult | None = None
    rounds: Sequence[EventsRound] = ()


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark and print the results; return 1 if an event is missing, twice or out of order."""
    options = _parser().parse_args(arguments)
    kept = True

    def run() -> None:
        nonlocal kept
        results = _measured(options)
        kept = all(one.is_kept for one in results.rounds)
        keep("thousands", headlines(results), results.machine)
        if options.json:
            print_json(asdict(results))
        else:
            show(tables(results), promises(results), machine=results.machine, as_document=options.markdown)

    return status(run) or (0 if kept else 1)


def _parser() -> argparse.ArgumentParser:
    made = parser("thousands", __doc__, parts=PARTS, page="docs/live.md")
    made.add_argument("--users", type=int, default=COUNTS.users, help="users to make")
    made.add_argument("--joins", type=int, help="users to join (default: as many)")
    made.add_argument("--tokens", type=int, default=COUNTS.tokens, help="joins that are by a token of a provider")
    made.add_argument("--connections", type=int, default=SIZES.connections, help="connections at the same time")
    made.add_argument("--topics", type=int, default=SIZES.topics, help="topics, each with five subscriptions")
    made.add_argument("--events", type=int, default=SIZES.events, help="events of all rounds together")
    made.add_argument("--round-events", type=int, help="events of a round (default: all of them)")
    made.add_argument("--results", type=Path, default=RESULTS, help="JSON lines, one for each round of events")
    return made


def _measured(options: argparse.Namespace) -> Results:
    parts = set(options.only or PARTS)
    command = " ".join(["python -m benchmarks.thousands", *sys.argv[1:]])
    results = Results(replace(this_machine(upstream=None), command=command))
    if "users" in parts:
        with step("users") as say, running_stage(port=options.port) as stage:
            joins = options.users if options.joins is None else options.joins
            counts = Counts(options.users, joins, min(options.tokens, joins), options.connections)
            found = thousands_users.measure(stage, say, counts)
            results = replace(results, users=found)
    if "events" in parts:
        with step("events") as say:
            results = replace(results, rounds=_rounds(options, say))
    return results


def _rounds(options: argparse.Namespace, say: Callable[[str], None]) -> list[EventsRound]:
    """Return the rounds of the file, and further ones up to the number of events of the options."""
    path: Path = options.results
    lines = path.read_text().splitlines() if path.exists() else []
    rounds = [EventsRound.parse(json.loads(line)) for line in lines]
    while (missing := options.events - sum(_events(one) for one in rounds)) > 0:
        size = min(options.round_events or missing, missing)
        sizes = Sizes(options.connections, options.topics, size)
        with running_stage(port=options.port) as stage:
            load = EventsLoad(stage.local, StageFolder(FOLDER), sizes, say, Random(SEED + len(rounds)))
            rounds.append(load.round())
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(json.dumps(rounds[-1].document()) + "\n")
    return rounds


def _events(one: EventsRound) -> int:
    return one.account.sent // FOLLOWERS_OF_A_TOPIC


def tables(results: Results) -> Iterator[Table]:
    """Yield the tables of the parts that were measured."""
    if results.users:
        yield _users(results.users)
    if results.rounds:
        yield _deliveries(results.rounds)
        yield _functions(results.rounds)


def _users(users: UsersResult) -> Table:
    joins = users.joins
    rows = [_step(one) for one in users.steps]
    what = f"join, {joins.most_at_once} connections at once"
    rows.append([what, f"{joins.users:,}", f"{joins.seconds:,.0f}", "", ""])
    note = (
        f"Seconds of the administrator's program, and its AWS calls. A join takes {joins.join_seconds.median:.2f} s "
        f"(p95 {joins.join_seconds.p95:.2f} s), from opening the connection to WELCOME, with "
        f"{thousands_users.AT_ONCE} at a time, {joins.by_token} by a token of an identity provider; each of "
        f"{joins.connections} connections joins one user after another, "
        f"and {joins.retries} joins were repeated."
    )
    return Table("Users who only join live", ["step", "users", "seconds", "AWS calls", "of which"], rows, note)


def _step(one: Step) -> list[str]:
    calls = f"{sum(one.calls.values()):,}"
    return [f"`user {one.what}`", f"{one.users:,}", f"{one.seconds:.1f}", calls, _calls(one.calls)]


def _calls(calls: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name.partition('.')[2]}" for name, count in sorted(calls.items()))


def _deliveries(rounds: Sequence[EventsRound]) -> Table:
    columns = [
        *("connections", "subscriptions", "topics", "events", "deliveries", "kills", "cuts", "reconnections"),
        *("missing", "twice", "out of order", "redelivered", "slowest s", "events a second"),
    ]
    note = (
        "Deliveries that the application sees: each subscriber must get each event of its topics once and in order. A "
        "redelivery has the publication id and the `_seq` of an event that arrived before; it is permitted, and the "
        "client hides it. Every second all instances of a function are killed, and a connection is cut every ten."
    )
    return Table("Thousands of subscriptions under kills", columns, [_row(one) for one in rounds], note)


def _row(one: EventsRound) -> list[str]:
    found: Account = one.account
    seconds = one.publish_seconds + one.settle_seconds
    counts = (one.connections, one.subscriptions, one.topics, _events(one), found.sent, one.kills, one.cuts)
    wrong = (found.lost, found.repeated, found.out_of_order + len(one.violations), one.redelivered)
    reconnections = one.sessions - one.connections
    return [
        *(f"{count:,}" for count in (*counts, reconnections, *wrong)),
        f"{found.slowest_seconds:.0f}",
        f"{_events(one) / seconds:.0f}" if seconds else "-",
    ]


def _functions(rounds: Sequence[EventsRound]) -> Table:
    events = sum(map(_events, rounds))
    rows = [_used(name, uses, events=events) for name, uses in _by_function(rounds).items()]
    columns = ["function", "instances", "at once", "peak MB of one", "processor seconds", "ms an event"]
    note = (
        "Processes of the functions, sampled every second from the first subscription to the last arrival: those that "
        "kills ended are counted, too, and their start is part of the processor seconds."
    )
    return Table("Memory and time of the functions", columns, rows, note)


def _used(name: str, uses: Sequence[FunctionUse], *, events: int) -> list[str]:
    seconds = sum(one.processor_seconds for one in uses)
    return [
        f"`{name}`",
        f"{sum(one.instances for one in uses):,}",
        str(max(one.at_once for one in uses)),
        f"{max(one.peak_megabytes for one in uses):.0f}",
        f"{seconds:,.0f}",
        f"{1000 * seconds / events:.1f}",
    ]


def _by_function(rounds: Sequence[EventsRound]) -> dict[str, list[FunctionUse]]:
    found: dict[str, list[FunctionUse]] = {}
    for use in (use for one in rounds for use in one.functions):
        found.setdefault(use.function, []).append(use)
    return found


def headlines(results: Results) -> Iterator[Headline]:
    """Yield the headline figures of the parts that were measured."""
    if results.users:
        for one in results.users.steps:
            yield Headline(f"seconds of `user {one.what}` for live-only users: {one.users:,}", f"{one.seconds:.1f}")
        joins = results.users.joins
        yield Headline(f"joins a second, connections: {joins.connections}", f"{joins.users / joins.seconds:.1f}")
    if results.rounds:
        accounts = [one.account for one in results.rounds]
        wrong = sum(one.lost + one.repeated + one.out_of_order for one in accounts)
        sizes = f"{results.rounds[0].subscriptions:,} subscriptions, {sum(map(_events, results.rounds)):,} events"
        what = f"deliveries missing, twice or out of order under kills, {sizes}"
        yield Headline(what, f"{wrong} of {sum(one.sent for one in accounts):,}", "0")


def promises(results: Results) -> Iterator[tuple[str, bool]]:
    """Yield each promise about these figures, and whether the run kept it."""
    if results.rounds:
        yield "no event is missing, twice or out of order", all(one.is_kept for one in results.rounds)
        for text in (text for one in results.rounds for text in (*one.account.examples, *one.violations)):
            yield text, False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
