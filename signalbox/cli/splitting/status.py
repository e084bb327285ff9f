"""`signalbox split list` and `status`: sessions and splits with their state."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import typer

from signalbox.cli.shared.output import print_json, print_line, print_table
from signalbox.cli.shared.stage import OutputOptions, StageOptions, age
from signalbox.cli.splitting.stage import control
from signalbox.nearest import suggestion
from signalbox.splitting.model.target import Target

TargetFilter = Annotated[str | None, typer.Option("--target", help="Only this deployed consumer.", metavar="KIND/NAME")]
Document = Mapping[str, Any]  # as the stage returns it; docs/splitting.md lists the fields


def list_sessions(*, target: TargetFilter = None, options: OutputOptions) -> None:
    """List sessions with owner, phase, age and backlog."""
    result = _status(target, options)
    sessions = [session for split in result["splits"] for session in split["sessions"]]
    if options.as_json:
        print_json(sessions)
    elif sessions:
        columns = ["session", "target", "owner", "phase", "age", "last heartbeat", "queue", "waiting", "in flight"]
        print_table(columns, _session_rows(sessions))
    else:
        print_line(f"no sessions{_hint(target, result)}")


def status(*, target: TargetFilter = None, options: OutputOptions) -> None:
    """Show splits with their stage, their queues, and the queues that each target reads."""
    result = _status(target, options)
    if options.as_json:
        print_json({name: result[name] for name in ("splits", "unreadable")})
        return
    for split in result["splits"]:
        _print_split(split)
    for split in result["unreadable"]:
        print_line(f"{split['target']}: unknown, because its record cannot be read: {split['reason']}")
    if not result["splits"] and not result["unreadable"]:
        print_line(f"no queue is split{_hint(target, result)}")


def _status(target: str | None, options: StageOptions) -> Document:
    """Return the splits, and those that cannot be read; `known` are the targets that have a registry, if none is split.

    The stage shows the queues of one target at a time: those of all could take longer than its function may run.
    """
    with control(options) as client:
        summary: Any = client.ask("status") if target is None else [{"target": str(Target.parse(target))}]
        unreadable = [{"target": one["target"], "reason": one["unreadable"]} for one in summary if "unreadable" in one]
        sent = [client.send("status", {"target": one["target"]}) for one in summary if "unreadable" not in one]
        replies: list[Any] = [client.result(request_id) for request_id in sent]
        splits = [split for reply in replies for split in reply["splits"]]
        registries: Any = [] if target is None or splits else client.ask("registries")
    return {"splits": splits, "unreadable": unreadable, "known": [one["target"] for one in registries]}


def _hint(target: str | None, result: Document) -> str:
    """Return the target that may be meant, if there is nothing of the given one."""
    if target is None:
        return ""
    known, name = result["known"], str(Target.parse(target))
    return f" of {name!r}" + ("" if name in known else f", which has no registry{suggestion(name, known)}")


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
