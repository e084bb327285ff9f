"""Measures the exchange: keys routed in a second, beside other matchers: `python -m benchmarks.exchange`."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from benchmarks import exchange_routing
from benchmarks.command import parser, status
from benchmarks.exchange_routing import COMPARED, SIZES, Routing
from benchmarks.machine import Machine, this_machine
from benchmarks.report import Table, show
from signalbox.cli.output import print_json
from signalbox.local.progress import step

PARTS = ("routing",)
GROWTH_LIMIT = 2.0
KOMBU_LIMIT = 10.0


@dataclass(frozen=True, slots=True)
class Results:
    """All that a run has measured."""

    machine: Machine
    routing: Sequence[Routing] = ()


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    options = parser("exchange", __doc__, parts=PARTS, page="docs/exchange.md").parse_args(arguments)
    return status(lambda: _print(_measured(options), options))


def _measured(options: argparse.Namespace) -> Results:
    parts = set(options.only or PARTS)
    command = " ".join(["python -m benchmarks.exchange", *sys.argv[1:]])
    results = Results(replace(this_machine(upstream=None), command=command))
    if "routing" in parts:
        with step("routing") as say:
            results = replace(results, routing=exchange_routing.measure(say))
    return results


def tables(results: Results) -> Iterator[Table]:
    """Yield the tables of what was measured."""
    if results.routing:
        yield _routing(results.routing)


def _routing(routing: Sequence[Routing]) -> Table:
    columns = ["bindings", "Signalbox", "kombu", "list of regexes", "times kombu", "bytes a binding"]
    rows = [
        [
            f"{one.bindings:,}",
            *(f"{rate:,.0f}" for rate in (one.ours, one.kombu, one.regexes)),
            f"{one.ours / one.kombu:,.1f}",
            f"{one.bytes_per_binding:,.0f}",
        ]
        for one in routing
    ]
    matches = sum(one.matches for one in routing) / len(routing)
    note = (
        f"{exchange_routing.KEYS:,} keys; two of five bindings are literal, two have a `*` and one a `#`. Whatever the "
        f"number of bindings, a key matches {matches:.1f} of them in the mean. Medians of {exchange_routing.ROUNDS} "
        "rounds in which the sides take turns; kombu and the regexes, which walk through all bindings, route a part "
        "of the keys."
    )
    return Table("Keys routed in a second", columns, rows, note)


def targets(results: Results) -> Iterator[tuple[str, bool]]:
    """Yield what the exchange promises of these figures, and whether this run kept it."""
    rates = {one.bindings: one for one in results.routing}
    if rates:
        few, many = rates[SIZES[0]], rates[SIZES[-1]]
        limit = f"at most {GROWTH_LIMIT:.0f} times as long for a key with {SIZES[-1]:,} bindings as with {SIZES[0]}"
        yield f"{limit} ({few.ours / many.ours:.2f})", few.ours / many.ours <= GROWTH_LIMIT
        compared = rates[COMPARED]
        limit = f"at least {KOMBU_LIMIT:.0f} times kombu's rate with {COMPARED:,} bindings"
        yield limit, compared.ours >= KOMBU_LIMIT * compared.kombu


def _print(results: Results, options: argparse.Namespace) -> None:
    if options.json:
        print_json(asdict(results))
        return
    show(tables(results), targets(results), machine=results.machine, as_document=options.markdown)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
