"""Benchmarks of the exchange: matching, SQS calls and latency: `python -m benchmarks.exchange`."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.parts.exchange import calls as exchange_calls
from benchmarks.parts.exchange import latency as exchange_latency
from benchmarks.parts.exchange import routing as exchange_routing
from benchmarks.parts.exchange.calls import Calls
from benchmarks.parts.exchange.routing import COMPARED, SIZES, Routing
from benchmarks.shared.command import Part, parser, run
from benchmarks.shared.figures import Summary
from benchmarks.shared.machine import this_machine
from benchmarks.shared.report import Table
from benchmarks.shared.stage import running_stage
from signalbox.local.progress import Say

GROWTH_LIMIT = 2.0
KOMBU_LIMIT = 10.0


def _routing(routing: Sequence[Routing]) -> Iterator[Table]:
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
        "rounds in which the sides take turns, each in a process of its own; kombu and the regexes, which walk "
        "through all bindings, route a part of the keys."
    )
    yield Table("Keys routed in a second", columns, rows, note)


def _calls(calls: Sequence[Calls]) -> Iterator[Table]:
    columns = ["queues, and who gets a message", "copies", "receive", "send", "delete", "all", "floor", "looks"]
    rows = [
        [
            f"{one.queues}, {'all' if one.is_for_all else 'one of them'}" if one.queues > 1 else "1",
            *(f"{n:,}" for n in (one.copies, one.received, one.sent, one.deleted, one.total, one.floor, one.looks)),
        ]
        for one in calls
    ]
    note = (
        "Lambda receives and deletes. The floor is the number of calls if all were full: receive and delete by tens, "
        "send by tens to each queue. Each batch of ten is sent on at once, so that calls are not full where a message "
        "is for one of many queues. A look is one read of the table's versions."
    )
    yield Table(f"SQS calls for {exchange_calls.MESSAGES:,} messages", columns, rows, note)


def _latency(latency: Mapping[str, Summary]) -> Iterator[Table]:
    columns = ["milliseconds from publisher to queue", "median", "p95", "longest"]
    rows = [[way, f"{one.median:.0f}", f"{one.p95:.0f}", f"{one.maximum:.0f}"] for way, one in latency.items()]
    some = next(iter(latency.values()))
    note = (
        f"{some.count} messages of each way, one after another, with {exchange_latency.OTHER_BINDINGS} other bindings. "
        "The consumer asks again and again."
    )
    yield Table("Time to a queue, on the emulator", columns, rows, note)


def _routing_targets(routing: Sequence[Routing]) -> Iterator[tuple[str, bool]]:
    rates = {one.bindings: one for one in routing}
    few, many = rates[SIZES[0]], rates[SIZES[-1]]
    limit = f"at most {GROWTH_LIMIT:.0f} times as long for a key with {SIZES[-1]:,} bindings as with {SIZES[0]}"
    yield f"{limit} ({few.ours / many.ours:.2f})", few.ours / many.ours <= GROWTH_LIMIT
    compared = rates[COMPARED]
    limit = f"at least {KOMBU_LIMIT:.0f} times kombu's rate with {COMPARED:,} bindings"
    yield limit, compared.ours >= KOMBU_LIMIT * compared.kombu


def _latency_on_stage(options: argparse.Namespace, say: Say) -> Mapping[str, Summary]:
    with running_stage(port=options.port) as stage:
        return exchange_latency.on_stage(stage.deployment, messages=options.messages, say=say)


PARTS: dict[str, Part[Any]] = {
    "routing": Part(lambda _, say: exchange_routing.measure(say), _routing, _routing_targets),
    "calls": Part(lambda _, __: list(exchange_calls.count()), _calls),
    "latency": Part(_latency_on_stage, _latency),
}


def main(arguments: Sequence[str]) -> int:
    """Run the benchmarks and print their tables."""
    options = parser("exchange", __doc__, parts=PARTS, page="docs/exchange.md")
    options.add_argument(
        "--messages", type=int, default=exchange_latency.MESSAGES, help="messages of each way (default: %(default)s)"
    )
    return run(options.parse_args(arguments), PARTS, this_machine("exchange"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
