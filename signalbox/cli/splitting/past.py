"""`signalbox split explain --over`: the past messages of split queues, and who got them by which filter."""

from collections.abc import Iterator, Mapping
from datetime import UTC
from typing import TYPE_CHECKING, Any

from signalbox.cli.history.what_if import Figure, Past, chart_lines, draw, history_of, many, size_text
from signalbox.cli.shared.nearest import suggestion
from signalbox.cli.shared.output import print_json, print_line, print_table
from signalbox.cli.splitting.stage import control
from signalbox.errors import RejectedError
from signalbox.splitting.forwarding.matching import DEPLOYED

if TYPE_CHECKING:
    from signalbox.history.what_if.past_splits import PastSplits, Share

EVENTS = {
    "routed: session": "got",
    "routed: deployed": "got",
    "routed: copied": "got a copy",
    "returned: session": "left, to another session",
    "returned: deployed": "left, to the deployed consumer",
    "returned: original": "left, to the original queue",
    "dead_letter: dead": "dead letter",
}


def explain_past(past: Past, *, queue: str | None, target: str | None, aws: bool, stage: str, as_json: bool) -> None:
    """Print who got the past messages of a queue, of a deployed consumer's queues, or of all split queues, and why."""
    from signalbox.splitting.model.target import Target

    target = None if target is None else str(Target.parse(target))
    everything = history_of(aws=aws, stage=stage).splits(past.window)
    found = _selected(everything, queue, target, aws=aws, stage=stage)
    what = " ".join(filter(None, (queue, target))) or "all split queues"
    lines = list(_sentences(past, found, what))
    if as_json:
        print_json(_document(found))
    else:
        _print(past, found, lines)
    draw(
        past,
        title=f"Messages of {what}",
        lines=lines,
        figures=[
            Figure(f"{found.incoming.messages:,}", "came in"),
            Figure(f"{found.to_sessions.messages:,}", "to sessions"),
            Figure(size_text(found.incoming.size_bytes), "in total"),
        ],
        buckets=found.buckets,
        bars=("Who got them", ((_who(one), one.amount.messages) for one in found.shares)),
    )


def _selected(found: "PastSplits", queue: str | None, target: str | None, *, aws: bool, stage: str) -> "PastSplits":
    """Return the messages of a queue and a target. Raises `RejectedError` for those that are not known either."""
    if queue not in (None, *found.queues) or target not in (None, *found.targets):
        splits = present_splits(aws=aws, stage=stage)
        originals = {str(one["original"]) for split in splits for one in split["queues"]}
        by_id = {str(one["queue_id"]): str(one["original"]) for split in splits for one in split["queues"]}
        queue = by_id.get(queue or "", queue)
        _require(queue, {*found.queues, *originals}, "queue")
        _require(target, {*found.targets, *(str(split["target"]) for split in splits)}, "deployed consumer")
    return found.of(queue=queue, target=target)


def present_splits(*, aws: bool, stage: str) -> list[Mapping[str, Any]]:
    """Return the documents of the splits that run."""
    with control(aws=aws, stage=stage) as client:
        result = client.ask("status", {})
    return list(result["splits"]) if isinstance(result, dict) else []


def _require(name: str | None, known: set[str], kind: str) -> None:
    if name is not None and name not in known:
        raise RejectedError(f"no {kind} {name!r} is split or had messages in that time{suggestion(name, known)}")


def _sentences(past: Past, found: "PastSplits", what: str) -> Iterator[str]:
    from signalbox.history.what_if.rate import Rate

    came = found.incoming
    if not found.rows:
        yield f"{what}: no message in the last {past.text}"
        return
    size = f"{size_text(came.size_bytes)}, the largest {size_text(found.largest_bytes)}"
    number = many(came.messages, "message")
    yield f"{what}: {number} came in within the last {past.text}, {size}; no filter can match more"
    yield Rate.of(found.buckets, found.window).sentence(past.zone or UTC)
    rest = came.messages - found.to_sessions.messages
    yield f"{found.to_sessions.messages:,} of them went to sessions and {rest:,} to the deployed consumer"
    if found.is_cut:
        yield "there is more than one answer holds: ask about a shorter time"


def _print(past: Past, found: "PastSplits", lines: list[str]) -> None:
    for line in (*lines, *chart_lines(past, found.buckets)):
        print_line(line)
    if found.rows:
        print_table(["who", "what", "messages", "size", "why"], map(_row, found.shares))


def _row(one: "Share") -> list[str]:
    why = one.verdict or ("no session matches" if one.session is None else "")
    return [
        _who(one),
        EVENTS.get(one.event, one.event),
        f"{one.amount.messages:,}",
        size_text(one.amount.size_bytes),
        why,
    ]


def _who(one: "Share") -> str:
    return DEPLOYED if one.session is None else f"{one.session} of {one.owner}"


def _document(found: "PastSplits") -> dict[str, object]:
    from signalbox.history.what_if.rate import Rate

    return {**found.document(), "rate": Rate.of(found.buckets, found.window).document()}
