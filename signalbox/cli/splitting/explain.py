"""`signalbox split explain`: who would receive messages, and why."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from signalbox.cli.shared.files import read_json
from signalbox.cli.shared.output import print_line, print_table
from signalbox.cli.shared.stage import StageOptions
from signalbox.cli.splitting.stage import control, warn_not_split
from signalbox.errors import RejectedError
from signalbox.filters.languages import Languages
from signalbox.splitting.forwarding.explanation import as_document, explained, parse_messages, parse_sessions
from signalbox.splitting.model.claims import FilterOutcome
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.target import Target

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document for each message.")]
Sessions = Annotated[
    Path | None,
    typer.Option(
        help='JSON list of {"session": NAME, "queues": {ID: FILTER}} in order of start; - for standard input.'
    ),
]
TargetName = Annotated[
    str | None,
    typer.Option(
        "--target", help="Use the running sessions of this deployed consumer, without --sessions.", metavar="KIND/NAME"
    ),
]
Messages = Annotated[Path, typer.Option(help="JSON list of SQS Message objects; - for standard input.")]
Queue = Annotated[str, typer.Option(help="Queue id, as in the sessions' configs.", metavar="ID")]
Sns = Annotated[
    bool, typer.Option("--sns", help="Messages are SNS notifications: filters also see the attributes inside them.")
]
S3Event = Annotated[
    bool,
    typer.Option(
        "--s3-event",
        help="Messages are S3 event notifications: jq programs also see `S3Object`, and `S3Metadata` if it is given.",
    ),
]

Document = Mapping[str, Any]  # a decision, as `as_document` returns it


def explain(
    *,
    queue: Queue,
    messages: Messages,
    sessions: Sessions = None,
    target: TargetName = None,
    sns: Sns = False,
    s3_event: S3Event = False,
    options: StageOptions,
    as_json: Json = False,
) -> None:
    """Show the recipient of each message, with the verdict of every session's filter."""
    if (sessions is None) == (target is None):
        raise RejectedError("give either --sessions, for sessions in a file, or --target, for live sessions")
    if sessions is not None:
        _print(_offline(sessions, messages, queue=queue, sns=sns, s3_event=s3_event), as_json=as_json)
    else:
        _print(_live(str(target), messages, options, queue=queue), as_json=as_json)


def _print(decisions: list[Document], *, as_json: bool) -> None:
    if as_json:
        for decision in decisions:
            print_line(json.dumps(decision))
    else:
        print_table(["message", "goes to", "copies", "why"], _rows(decisions))


def _offline(sessions: Path, messages: Path, *, queue: str, sns: bool, s3_event: bool) -> list[Document]:
    described = parse_sessions(read_json(sessions), Languages())
    decisions = explained(parse_messages(read_json(messages)), described, QueueId(queue), sns=sns, s3_event=s3_event)
    for session in described:
        warn_not_split(session.config.other_brokers)
    return [as_document(number, decision) for number, decision in enumerate(decisions)]


def _live(target: str, messages: Path, options: StageOptions, *, queue: str) -> list[Document]:
    documents = [dict(message.document) for message in parse_messages(read_json(messages))]
    with control(options) as client:
        result = client.ask("explain", {"target": str(Target.parse(target)), "queue_id": queue, "messages": documents})
    return list(result["decisions"]) if isinstance(result, dict) else []


def _rows(decisions: Iterable[Document]) -> Iterator[tuple[str, str, str, str]]:
    for decision in decisions:
        why = "\n".join(map(_reason, decision["verdicts"])) or "no session to evaluate"
        yield str(decision["message"]), decision["owner"], ", ".join(decision["copies"]), why


def _reason(verdict: Document) -> str:
    text = f"{verdict['session']} ({verdict['mode']}): {verdict['reason']}"
    return f"{text}; its session would be cancelled" if verdict["outcome"] == FilterOutcome.STOPPED else text
