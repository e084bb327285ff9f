"""`signalbox split list` and `status`: sessions and splits with their state."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import typer

from signalbox.cli.shared.output import print_json, print_line, print_table
from signalbox.cli.shared.stage import Aws, Json, Stage, age
from signalbox.cli.splitting.stage import control
from signalbox.splitting.model.target import Target

TargetFilter = Annotated[str | None, typer.Option("--target", help="Only this deployed consumer.", metavar="KIND/NAME")]
Document = Mapping[str, Any]  # as the stage returns it; docs/splitting.md lists the fields


def list_sessions(
    *, target: TargetFilter = None, aws: Aws = False, stage: Stage = "signalbox", as_json: Json = False
) -> None:
    """List sessions with owner, phase, age and backlog."""
    sessions = [session for split in _splits(_status(target, aws=aws, stage=stage)) for session in split["sessions"]]
    if as_json:
        print_json(sessions)
    elif sessions:
        columns = ["session", "target", "owner", "phase", "age", "last sign", "queue", "waiting", "in flight"]
        print_table(columns, _session_rows(sessions))
    else:
        print_line("no sessions")


def status(*, target: TargetFilter = None, aws: Aws = False, stage: Stage = "signalbox", as_json: Json = False) -> None:
    """Show splits with their stage, their queues, and the queues that each target reads."""
    result = _status(target, aws=aws, stage=stage)
    splits, unreadable = _splits(result), result.get("unreadable", ())
    if as_json:
        print_json({"splits": splits, "unreadable": unreadable})
        return
    for split in splits:
        _print_split(split)
    for split in unreadable:
        print_line(f"{split['target']}: unknown, because its record cannot be read: {split['reason']}")
    if not splits and not unreadable:
        print_line("no queue is split")


def _status(target: str | None, *, aws: bool, stage: str) -> Document:
    fields = {} if target is None else {"target": str(Target.parse(target))}
    with control(aws=aws, stage=stage) as client:
        result = client.ask("status", fields)
    return result if isinstance(result, dict) else {}


def _splits(result: Document) -> list[Document]:
    return list(result.get("splits", ()))


def _session_rows(sessions: Iterable[Document]) -> Iterator[list[str]]:
    for session in sessions:
        cells = [session["session"], session["target"], session["owner"], session["phase"]]
        cells += [age(session["started_at"]), age(session["heartbeat_at"])]
        for queue in session["queues"] or [{}]:
            mark = " (exclusive)" if queue.get("exclusive") else ""
            yield [*cells, f"{queue.get('queue_id', '')}{mark}", *_counts(queue)]
            cells = [""] * len(cells)


def _counts(queue: Document) -> list[str]:
    return ["" if queue.get(name) is None else str(queue[name]) for name in ("waiting", "in_flight")]


def _print_split(split: Document) -> None:
    title = f"{split['target']}: {split['stage']} for {age(split['since'])}, reads {split['target_reads']}"
    columns = ["queue", "original", "deployed consumer's", "forwarding", "waiting", "in flight"]
    print_table(columns, _queue_rows(split["queues"]), title=title)
    for session in split["sessions"]:
        reason = f": {session['reason']}" if session.get("reason") else ""
        exclusive = ", ".join(queue["queue_id"] for queue in session["queues"] if queue.get("exclusive"))
        whole = f", exclusive on {exclusive}" if exclusive else ""
        print_line(f"  {session['session']} of {session['owner']} is {session['phase']}{whole}{reason}")
    for note in split.get("notes", ()):
        print_line(f"  {note}")


def _queue_rows(queues: Iterable[Document]) -> Iterator[list[str]]:
    for queue in queues:
        names = [str(queue[name]) for name in ("queue_id", "original", "deployed", "forwarding")]
        yield [*names, *_counts(queue)]
