"""The text of the splitting report."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import NamedTuple

HEAD = (
    ("routed", "routed-total", ("session", "deployed", "copied")),
    ("returned", "returned-total", ("session", "deployed", "original")),
    ("dead_letters", "dead_letter-total", ("dead",)),
    ("sessions", "session-total", ("started", "ready", "ended")),
)
TIMES = ("time-to-route-ms", "time-to-ready-ms")
PERCENTILES = ("p50", "p95", "p99")


class Line(NamedTuple):
    """A row of the table `split_daily` without its day."""

    metric: str
    queue: str | None
    session: str | None
    label: str | None
    value: int


def split_text(day: date, lines: Sequence[Line]) -> str:
    """Return the report of a UTC day: totals, and a block for each queue."""
    end = day + timedelta(days=1)
    text = [f"split-report-end {end.isoformat()} 00:00:00 (86400 s)", *_head(lines)]
    for queue in sorted({line.queue for line in lines if line.queue is not None}):
        text += ["", f"queue {queue}", *(f"  {one}" for one in _block([one for one in lines if one.queue == queue]))]
    return "".join(f"{one}\n" for one in text)


def _head(lines: Sequence[Line]) -> Iterator[str]:
    values = {(line.metric, line.label): line.value for line in lines if line.queue is None}
    for title, metric, labels in HEAD:
        yield f"{title} " + " ".join(f"{label}={values.get((metric, label), 0)}" for label in labels)
    for metric in TIMES:
        yield from _times(metric, [line for line in lines if line.queue is None])


def _block(lines: Sequence[Line]) -> Iterator[str]:
    for line in lines:
        who = line.session or "deployed"
        if line.metric == "routed":
            yield f"{'copied' if line.label == 'copied' else 'routed'} to {who} {line.value}"
        elif line.metric == "returned":
            yield f"returned by {who} to {line.label} {line.value}"
        elif line.metric == "dead_letter":
            yield f"dead {line.value}: {line.label or 'no reason'}"
    yield from _times(TIMES[0], lines)


def _times(metric: str, lines: Sequence[Line]) -> Iterator[str]:
    values = {line.label: line.value for line in lines if line.metric == metric}
    if values:
        yield f"{metric} " + " ".join(f"{name}={values[name]}" for name in PERCENTILES)
