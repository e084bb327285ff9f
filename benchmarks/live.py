"""The benchmark of live next to crossbar, with AWS quotas and costs: `python -m benchmarks.live`."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from benchmarks.parts.live import calls as live_calls
from benchmarks.parts.live import crossbar_side
from benchmarks.parts.live import fan_out as live_fan_out
from benchmarks.parts.live import latency as live_latency
from benchmarks.parts.live import order as live_order
from benchmarks.parts.live import publishing as live_publishing
from benchmarks.parts.live.calls import Calls
from benchmarks.parts.live.costs import ALONE, IN_BATCHES, IN_BURSTS, Load, Prices, costs, needs
from benchmarks.parts.live.fan_out import FanOut
from benchmarks.parts.live.latency import Latency, Router
from benchmarks.parts.live.order import Order
from benchmarks.parts.live.publishing import CROSSBAR, OURS, Publishing
from benchmarks.shared.command import Part, parser, run
from benchmarks.shared.figures import ratio
from benchmarks.shared.machine import this_machine
from benchmarks.shared.report import Table
from benchmarks.shared.stage import running_stage
from signalbox.clients.live.session import Login
from signalbox.local.progress import Say

GROWTH_LIMIT = 2.0
STAGE = "Signalbox, on the emulator"


def _latencies(options: argparse.Namespace, say: Say) -> list[Latency]:
    """Measure all routers in one run, while all of them are running."""
    with running_stage(port=options.port) as emulated, ExitStack() as stack:
        others = [live_fan_out.ours(stack), *live_fan_out.crossbar(stack, say)]
        routers = [Router(one.name, one.url, one.login, one.login) for one in others]
        return live_latency.measure([_stage(emulated.local), *routers], say)


def _stage(local: Mapping[str, Any]) -> Router:
    users = {user["role"]: Login(local["realm"], user["name"], user["ticket"]) for user in local["live_users"]}
    return Router(STAGE, local["websocket_url"], users["subscriber"], users["source"])


def _latency(latencies: Sequence[Latency]) -> Iterator[Table]:
    columns = ["router", "subscribers", "median ms", "p95 ms", "ms to PUBLISHED", "deliveries a second", "missing"]
    rows = [
        [
            one.router,
            str(one.subscribers),
            f"{one.milliseconds.median:.1f}",
            f"{one.milliseconds.p95:.1f}",
            f"{one.acknowledged.median:.1f}",
            f"{one.deliveries_per_second:,.0f}",
            str(one.missing),
        ]
        for one in latencies
    ]
    note = (
        f"{live_latency.EVENTS} events one after another, from publisher to each subscriber; then the events of "
        f"{live_latency.DELIVERIES:,} deliveries, at least {live_latency.LEAST_EVENTS}, with {live_latency.IN_FLIGHT} "
        "in flight. All clients are threads "
        "of one process. The rules alone are the session machine, matching and messages, in memory behind a WebSocket: "
        "the difference to the stage is the emulated gateway, queues, functions and tables, not AWS's."
    )
    yield Table("Events to many subscribers", columns, rows, note)


def _publishing(publishing: Sequence[Publishing]) -> Iterator[Table]:
    sizes = live_publishing.SIZES
    columns = ["router", "matched by", *(f"{size:,}, us" for size in sizes), f"{sizes[-1]:,} over {sizes[0]}"]
    rows = [
        [one.router, one.match, *(f"{one.microseconds[size]:.0f}" for size in sizes), f"{one.growth:.2f}"]
        for one in publishing
    ]
    note = (
        "Microseconds from PUBLISH to PUBLISHED, one after another, while sessions hold this number of "
        f"subscriptions, all of which do not match: medians of {live_publishing.PUBLICATIONS} publications, and of "
        f"{live_publishing.ROUNDS} alternating rounds. Each router has a process of its own, and the same "
        "client over the same WebSocket. Signalbox's is the rules in memory, with the subscriber directory of the "
        "function `route`, without the emulated gateway and functions."
    )
    yield Table("Publishing with subscriptions that do not match", columns, rows, note)


def _fan_out(found: Sequence[FanOut]) -> Iterator[Table]:
    ours, crossbar = _by_router(found)
    columns = ["subscribers", "rules: deliveries a second", "us of a processor for each"]
    columns += ["crossbar: deliveries a second", "us of a processor for each", "times crossbar"]
    rows = []
    for count, one in ours.items():
        peer = crossbar.get(count)
        theirs = [*_fan_out_cells(peer), ratio(one.deliveries_per_second, peer.deliveries_per_second)] if peer else []
        rows.append([str(count), *_fan_out_cells(one), *(theirs or ["-"] * 3)])
    note = (
        f"{live_fan_out.DELIVERIES:,} deliveries with {live_fan_out.IN_FLIGHT} publications in flight: medians of "
        f"{live_fan_out.ROUNDS} alternating rounds. One thread reads all connections and only counts a marker in the "
        "bytes, so that the routers take most of the time. Processor time is that of the router's processes."
    )
    yield Table("Fan-out of the rules alone", columns, rows, note)


def _by_router(found: Sequence[FanOut]) -> tuple[Mapping[int, FanOut], Mapping[int, FanOut]]:
    """Return the figures of Signalbox and of crossbar by the number of subscribers."""
    ours, crossbar = ({one.subscribers: one for one in found if one.router == name} for name in (OURS, CROSSBAR))
    return ours, crossbar


def _fan_out_cells(one: FanOut) -> list[str]:
    return [f"{one.deliveries_per_second:,.0f}", f"{one.microseconds:.0f}"]


def _calls(calls: Sequence[Calls]) -> Iterator[Table]:
    columns = ["subscriptions", "warm: calls", "KB", "cold: calls", "KB", "after many changes: calls", "KB"]
    rows = [
        [
            f"{one.subscriptions:,}",
            *(
                cell
                for spent in (one.warm, one.cold, one.behind)
                for cell in (f"{spent.calls:.0f}", f"{spent.answered_bytes / 1000:,.1f}")
            ),
        ]
        for one in calls
    ]
    note = (
        "The AWS calls of the function `route` for an acknowledged publication alone in its batch, and the KB of all "
        "responses; one subscription matches, the others do not. A warm function reads the newest changes of the "
        "realm's patterns, 700 bytes of them at most. A cold one reads all patterns, once. One that "
        f"has missed more changes (here {live_calls.MANY_CHANGES}, of one closed connection) also reads those, or "
        "all patterns if they are fewer."
    )
    yield Table("AWS calls of a publication", columns, rows, note)


def _order(found: Sequence[Order]) -> Iterator[Table]:
    columns = [
        "ordered by",
        "publishers",
        "topics",
        "groups",
        "batches",
        "DynamoDB calls",
        "SQS calls",
        "Firehose calls",
    ]
    rows = [
        [
            f"`{one.order_by}`",
            *(f"{number:,}" for number in (one.publishers, one.topics, one.groups, one.batches)),
            *(f"{one.calls[service]:,}" for service in ("DynamoDB", "SQS", "Firehose")),
        ]
        for one in found
    ]
    note = (
        f"The calls of the function `route` for {live_order.PUBLICATIONS:,} acknowledged publications in batches of "
        f"{live_order.BATCH}. Sessions take turns, and each goes through all topics. Groups can be routed side by side."
    )
    yield Table("Order by publisher in counts", columns, rows, note)


def _needs(load: Load) -> Iterator[Table]:
    rows = [
        [
            one.what,
            f"{one.needed:,.0f}",
            "-" if one.quota is None else f"{one.quota:,.0f}",
            "" if one.is_enough else "yes",
        ]
        for one in needs(load, ALONE)
    ]
    title = f"Quotas for {load.connections:,} connections and {load.deliveries_per_minute:,} deliveries a minute"
    note = (
        "A calculation, not a measurement, from the inputs in benchmarks/parts/live/costs.py. Request an "
        "increase of insufficient quotas from AWS in advance."
    )
    yield Table(title, ["quota", "needed", "default", "increase needed"], rows, note)


def _costs(load: Load) -> Iterator[Table]:
    everybody = replace(ALONE, users=load.connections)
    found = {work: dict(costs(load, work, Prices())) for work in (ALONE, IN_BURSTS, IN_BATCHES)}
    rows = [[what, *(f"{one[what]:,.0f}" for one in found.values())] for what in found[ALONE]]
    rows.append(["all", *(f"{sum(one.values()):,.0f}" for one in found.values())])
    note = (
        f"On-demand prices of us-east-1, 30 days at constant load; each event has {load.subscribers_per_event} "
        f"subscribers. The first column is an upper bound: each event comes alone, so that each delivery is an item "
        f"of its own in an outbox. In bursts of {IN_BURSTS.events_per_item:.0f}, such as lines of a log, the events of "
        f"a batch share an item, and the WebSocket message of a client that offers `wamp.2.json.batched`. "
        f"{ALONE.users} users; a batch of events reads {ALONE.reads(load):.1f} units, and {everybody.reads(load):.1f} "
        f"with as many users as connections. A change of rights costs "
        f"{ALONE.change_reads(load) * Prices().read_units:.2f} USD."
    )
    bursts = f"in bursts of {IN_BURSTS.events_per_item:.0f}"
    columns = ["service", "each event alone, USD a month", bursts, f"{bursts}, batched"]
    yield Table("Costs", columns, rows, note)


def _publishing_kept(publishing: Sequence[Publishing]) -> Iterator[tuple[str, bool]]:
    for one in publishing:
        if one.router == OURS:
            fewest, most = live_publishing.SIZES[0], live_publishing.SIZES[-1]
            text = f"a publication at most {GROWTH_LIMIT:.0f} times as long with {most:,} {one.match} subscriptions"
            yield f"{text} as with {fewest} ({one.growth:.2f})", one.growth <= GROWTH_LIMIT


def _fan_out_kept(found: Sequence[FanOut]) -> Iterator[tuple[str, bool]]:
    ours, crossbar = _by_router(found)
    for count in crossbar:
        times = ours[count].deliveries_per_second / crossbar[count].deliveries_per_second
        yield f"at least as many deliveries a second as crossbar, subscribers: {count} ({times:.2f})", times >= 1


def _latency_kept(latencies: Sequence[Latency]) -> Iterator[tuple[str, bool]]:
    yield "no event is missing", not any(one.missing for one in latencies if one.router != CROSSBAR)


def _calls_kept(calls: Sequence[Calls]) -> Iterator[tuple[str, bool]]:
    fewest, most = calls[0], calls[-1]
    compared = f"with {most.subscriptions:,} subscriptions as with {fewest.subscriptions}"
    yield f"a warm function makes as many calls for a publication {compared}", most.warm.calls == fewest.warm.calls
    growth = most.warm.answered_bytes / fewest.warm.answered_bytes
    yield f"and reads at most {GROWTH_LIMIT:.0f} times as much ({growth:.2f})", growth <= GROWTH_LIMIT


PARTS: dict[str, Part[Any]] = {
    "latency": Part(_latencies, _latency, _latency_kept),
    "publishing": Part(lambda _, say: live_publishing.measure(say), _publishing, _publishing_kept),
    "fan-out": Part(lambda _, say: live_fan_out.measure(say), _fan_out, _fan_out_kept),
    "calls": Part(lambda _, say: live_calls.measure(say), _calls, _calls_kept),
    "order": Part(lambda _, say: live_order.measure(say), _order),
    "costs": Part(lambda _, __: Load(), lambda load: (*_needs(load), *_costs(load))),
}


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark, print the results and return the exit status."""
    options = parser("live", __doc__, parts=PARTS, page="docs/live.md").parse_args(arguments)
    return run(options, PARTS, this_machine("live", upstream=f"crossbar {crossbar_side.VERSION}"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
