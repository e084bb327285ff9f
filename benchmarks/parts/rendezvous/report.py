"""The tables and the targets of the rendezvous benchmark."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.parts.rendezvous.calls import Calls
from benchmarks.parts.rendezvous.clients import Exchange
from benchmarks.parts.rendezvous.robustness import DUPLICATED, Robustness
from benchmarks.parts.rendezvous.timing import AT_ONCE, Timings
from benchmarks.shared.figures import Summary, ratio, summary
from benchmarks.shared.machine import Machine
from benchmarks.shared.report import Table
from benchmarks.shared.sides import SIGNALBOX, UPSTREAM

# Measured on the same emulator: the real client gives up after five receives (111.0 s) without a reply.
UPSTREAM_SILENCE = "111 s, no reply (quoted; measure with --slow)"
NOTHING = "-"
# The real client receives for the first time after one second; an answer within that second adds no delay.
INSIDE_LIMIT_MS = 1000
CALLS_LIMIT = 5


@dataclass(frozen=True, slots=True)
class Results:
    """The measurements of a run, by broker."""

    machine: Machine
    timings: Mapping[str, Timings]
    calls: Mapping[str, Calls]
    robustness: Mapping[str, Robustness]


def tables(results: Results) -> Iterator[Table]:
    """Yield a table for each part that was measured."""
    if results.timings:
        yield _timings(results.timings)
    if results.calls:
        yield _calls(results.calls)
    if results.robustness:
        yield _robustness(results.robustness)


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
        for how in ("one after another", f"{AT_ONCE} at once"):
            yield from _comparison(results.timings, how)
    if SIGNALBOX in results.calls:
        calls = results.calls[SIGNALBOX]
        yield f"at most {CALLS_LIMIT} SQS calls of the broker per rendezvous", calls.per_rendezvous <= CALLS_LIMIT
        yield "no SQS call of the broker while idle", not calls.idle


def _comparison(timings: Mapping[str, Timings], how: str) -> Iterator[tuple[str, bool]]:
    ours, theirs = (_summary(timings[side], "client_ms", how) for side in (SIGNALBOX, UPSTREAM))
    if ours and theirs:
        yield f"client, {how}: median no worse than upstream's", ours.median <= theirs.median
        yield f"client, {how}: p95 no worse than upstream's", ours.p95 <= theirs.p95
