"""The tables and the targets of the rendezvous benchmark."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.parts.rendezvous.bursts import LARGE_BUDGET_USD, Killed, of_signalbox
from benchmarks.parts.rendezvous.calls import Calls
from benchmarks.parts.rendezvous.clients import Exchange
from benchmarks.parts.rendezvous.robustness import DUPLICATED, Robustness
from benchmarks.parts.rendezvous.timing import AT_ONCE, Timings
from benchmarks.shared.figures import Summary, ratio, summary
from benchmarks.shared.machine import Machine
from benchmarks.shared.report import Table
from benchmarks.shared.sides import SIGNALBOX, UPSTREAM
from stacks.settings.config import Config
from stacks.shared.function import MEMORY_MEGABYTES
from stacks.shared.http_api import CALLS_PER_SECOND

# Measured on the same emulator: the real client gives up after five receives (111.0 s) without a reply.
UPSTREAM_SILENCE = "111 s, no reply (quoted; measure with --slow)"
NOTHING = "-"
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
WHOLE_CORE_MEGABYTES = 1769
# The real client receives for the first time after one second; an answer within that second adds no delay.
INSIDE_LIMIT_MS = 1000
CALLS_LIMIT = 5
# Of upstream's times: of clients one after another, and of twenty at once at the larger budget.
LIMIT, BURST_LIMIT = 1.01, 1.05
FIRST_LIMIT_MS, KILLED_LIMIT_MS = 3000, 10_000


@dataclass(frozen=True, slots=True)
class Results:
    """The measurements of a run, by broker."""

    machine: Machine
    timings: Mapping[str, Timings]
    calls: Mapping[str, Calls]
    robustness: Mapping[str, Robustness]
    first: Sequence[Exchange] = ()
    at_large_budget: Mapping[str, Timings] = field(default_factory=dict)
    killed: Killed | None = None
    flood: float | None = None


def tables(results: Results) -> Iterator[Table]:
    """Yield a table for each part that was measured."""
    if results.timings:
        yield _timings(results.timings)
    if results.calls:
        yield _calls(results.calls)
    if results.robustness:
        yield _robustness(results.robustness)
    if rows := list(_burst_rows(results)):
        yield Table("Bursts of clients", ["", "right answers", "milliseconds: median / p95 / longest"], rows)
    if results.flood:
        yield _flood(results.flood)


def _flood(seconds: float) -> Table:
    executions = Config().proxy_concurrency
    accepted, taken = executions * CALLS_PER_SECOND, seconds * WHOLE_CORE_MEGABYTES / MEMORY_MEGABYTES
    rows = [
        ["processor time of a poll that is not served", f"{1000 * seconds:.1f} ms"],
        [f"the same with {MEMORY_MEGABYTES} MB on AWS, calculated", f"{1000 * taken:.1f} ms"],
        ["requests a second from which the URL refuses answers", f"{min(accepted, executions / taken):.0f}"],
        [f"of {executions} executions, taken by as many polls", f"{accepted * taken:.1f}"],
    ]
    return Table("A flood of polls, at the default concurrency", ["", "measured"], rows)


def _burst_rows(results: Results) -> Iterator[list[str]]:
    if results.first:
        yield _burst_row("the first clients of a stage", results.first)
    if results.at_large_budget:
        yield _burst_row(f"{AT_ONCE} at once, {LARGE_BUDGET_USD} USD a month", of_signalbox(results.at_large_budget))
    if results.killed:
        yield _burst_row(f"under {results.killed.kills} kills", results.killed.exchanges)


def _burst_row(label: str, exchanges: Sequence[Exchange]) -> list[str]:
    found = _right(exchanges)
    times = f"{found.median:.0f} / {found.p95:.0f} / {found.maximum:.0f}" if found else NOTHING
    return [label, f"{found.count if found else 0} of {len(exchanges)}", times]


def _right(exchanges: Sequence[Exchange]) -> Summary | None:
    """Return the client's times of the exchanges with the right answer."""
    return summary([exchange.client_ms for exchange in exchanges if exchange.is_right])


def _timings(timings: Mapping[str, Timings]) -> Table:
    sides = list(timings)
    columns = ["milliseconds: median / p95 / longest", *sides, *(["ratio of medians / p95"] if len(sides) > 1 else [])]
    rows = [
        _timing_row(f"{what}, {how}", [_summary(timings[side], field, how) for side in sides])
        for what, field in (("client: offer to answer", "client_ms"), ("inside: sent to answer in queue", "inside_ms"))
        for how in ("one after another", f"{AT_ONCE} at once")
    ]
    return Table("Time to answer", columns, [*rows, *_work_rows(timings)], note=_outcome(timings))


def _work_rows(timings: Mapping[str, Timings]) -> Iterator[list[str]]:
    """Yield the processor time per rendezvous; with all cores busy, it bounds the duration of a burst."""
    work = [_each(one.burst_processor_seconds, one) for one in timings.values()]
    cells = [f"{milliseconds:.0f}" for milliseconds in work]
    yield [f"processor time of one of {AT_ONCE} at once", *cells, *([ratio(*work)] if len(work) > 1 else [])]
    functions = _each(timings[SIGNALBOX].function_processor_seconds, timings[SIGNALBOX])
    yield ["of it in functions", f"{functions:.1f}", *[NOTHING] * (len(cells) if len(cells) > 1 else 0)]


def _each(seconds: Sequence[float], of: Timings) -> float:
    """Return the milliseconds of one exchange of the bursts."""
    return 1000 * sum(seconds) / max(1, len(of.at_once))


def _exchanges(timings: Timings, how: str) -> list[Exchange]:
    return timings.sequential if how == "one after another" else timings.at_once


def _summary(timings: Timings, field: str, how: str) -> Summary | None:
    values = (getattr(exchange, field) for exchange in _exchanges(timings, how) if exchange.is_right)
    return summary([value for value in values if value is not None])


def _timing_row(label: str, summaries: Sequence[Summary | None]) -> list[str]:
    cells = [f"{s.median:.0f} / {s.p95:.0f} / {s.maximum:.0f}" if s else NOTHING for s in summaries]
    if len(summaries) > 1 and summaries[0] and summaries[1]:
        ours, theirs = summaries[0], summaries[1]
        cells.append(f"{ratio(ours.median, theirs.median)} / {ratio(ours.p95, theirs.p95)}")
    return [label, *cells]


def _outcome(timings: Mapping[str, Timings]) -> str:
    return " ".join(_outcome_of(side, timing) for side, timing in timings.items())


def _outcome_of(side: str, timings: Timings) -> str:
    exchanges = [*timings.sequential, *timings.at_once]
    right = sum(exchange.is_right for exchange in exchanges)
    errors = Counter(exchange.error or "another answer" for exchange in exchanges if not exchange.is_right)
    problems = "".join(f"; {count} times {error!r}" for error, count in errors.items())
    failures = f", {len(timings.proxy_failures)} failed polls" if timings.proxy_failures else ""
    return f"{side}: {right} of {len(exchanges)} offers got the right answer{failures}{problems}."


def _calls(calls: Mapping[str, Calls]) -> Table:
    operations = sorted({name for side in calls.values() for name in side.busy})
    rows = [
        [name, *(f"{side.busy.get(name, 0) / side.rendezvous:.2f}" for side in calls.values())] for name in operations
    ]
    rows += [
        ["**broker, all**", *(f"**{side.per_rendezvous:.2f}**" for side in calls.values())],
        ["client", *(f"{sum(side.client.values()) / side.rendezvous:.2f}" for side in calls.values())],
        ["broker while idle, a minute", *(f"{side.idle_per_minute:.1f}" for side in calls.values())],
    ]
    some = next(iter(calls.values()))
    note = (
        f"{some.rendezvous} rendezvous each, 1 to {AT_ONCE} at once (right answers: "
        f"{', '.join(str(side.right) for side in calls.values())}), counted until the last client queue was "
        f"deleted ({some.busy_seconds:.0f} s), then idle for {some.idle_seconds:.0f} s. Lambda's own calls, which "
        "receive from the broker queue and delete handled messages, are not included: the emulator does not make them."
    )
    return Table("SQS calls per rendezvous, cleanup included", ["call", *calls], rows, note)


def _robustness(found: Mapping[str, Robustness]) -> Table:
    rows = [
        ["only a silent proxy: the client has a reply after", *(_replied(found[side].only_silent) for side in found)],
        ["a silent proxy, then a good one: answer after", *(_replied(found[side].silent_then_good) for side in found)],
        [
            f"proxies used up by {DUPLICATED} offers that were sent twice",
            *(str(found[side].proxies_for_duplicates) for side in found),
        ],
    ]
    return Table("Faults", ["", *found], rows)


def _replied(exchange: Exchange | None) -> str:
    if exchange is None:
        return UPSTREAM_SILENCE
    seconds = f"{exchange.client_ms / 1000:.1f} s"
    return seconds if exchange.is_right else f"{seconds}: {exchange.error}"


def targets(results: Results) -> Iterator[tuple[str, bool]]:
    """Yield each promise of rendezvous about these figures, and whether the run kept it."""
    if SIGNALBOX in results.timings:
        inside = _summary(results.timings[SIGNALBOX], "inside_ms", f"{AT_ONCE} at once")
        yield (
            f"answer in the client's queue within {INSIDE_LIMIT_MS} ms, p95 at {AT_ONCE} at once",
            bool(inside and inside.p95 < INSIDE_LIMIT_MS),
        )
    if UPSTREAM in results.timings:
        yield from _comparison(results.timings, "one after another")
    if SIGNALBOX in results.calls:
        calls = results.calls[SIGNALBOX]
        yield f"at most {CALLS_LIMIT} SQS calls of the broker per rendezvous", calls.per_rendezvous <= CALLS_LIMIT
        yield "no SQS call of the broker while idle", not calls.idle
    yield from _bursts_kept(results)


def _bursts_kept(results: Results) -> Iterator[tuple[str, bool]]:
    first, large = _right(results.first), _right(of_signalbox(results.at_large_budget))
    upstream = results.timings.get(UPSTREAM)
    theirs = _summary(upstream, "client_ms", f"{AT_ONCE} at once") if upstream else None
    if first:
        yield f"the first {len(results.first)} clients: p95 at most {FIRST_LIMIT_MS} ms", first.p95 <= FIRST_LIMIT_MS
    if large and theirs:
        kept = large.p95 <= BURST_LIMIT * theirs.p95
        yield f"{AT_ONCE} at once, larger budget: p95 at most {BURST_LIMIT} of upstream's", kept
    if results.killed:
        found, sent = _right(results.killed.exchanges), len(results.killed.exchanges)
        kept = found is not None and found.count == sent and found.maximum <= KILLED_LIMIT_MS
        yield f"under kills: {sent} of {sent} answered, slowest at most {KILLED_LIMIT_MS} ms", kept


def _comparison(timings: Mapping[str, Timings], how: str) -> Iterator[tuple[str, bool]]:
    ours, theirs = (_summary(timings[side], "client_ms", how) for side in (SIGNALBOX, UPSTREAM))
    if ours and theirs:
        yield f"client, {how}: median at most {LIMIT} of upstream's", ours.median <= LIMIT * theirs.median
        yield f"client, {how}: p95 at most {LIMIT} of upstream's", ours.p95 <= LIMIT * theirs.p95
