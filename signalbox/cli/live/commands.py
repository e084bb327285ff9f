"""`signalbox tail` and `signalbox watch`: what is published, as it is published."""

import json
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.cli.exchange.stage import seconds
from signalbox.cli.live.stage import Exchange, User, events, joining
from signalbox.cli.shared.output import print_line
from signalbox.cli.shared.stage import Aws, Stage
from signalbox.errors import RejectedError
from signalbox.live.wamp.patterns import MatchPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from signalbox.clients.live.cursor import ReceivedEvent
    from signalbox.live.wamp.messages import Payload
    from signalbox.live.wamp.options import BackfillStart

LINES = 10  # as `tail` has it
NOTHING = "-"

Json = Annotated[bool, typer.Option("--json", help="Print JSON, one line an event.")]
Maximum = Annotated[int | None, typer.Option("--max", help="Events after which to leave.", min=1, metavar="NUMBER")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(tail)
    app.command()(watch)


def tail(
    *,
    topic: Annotated[str, typer.Argument(help="Topic, or what matches topics.", metavar="TOPIC")],
    match: Annotated[
        MatchPolicy, typer.Option(help="TOPIC is a topic, its beginning, or has empty words that stand for any.")
    ] = MatchPolicy.EXACT,
    last: Annotated[
        int | None, typer.Option(help=f"Events of the past to begin with; {LINES} if not given.", min=0)
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Begin with what was published since: a time, or so long ago, such as 5m.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Wait for more until interrupted, or leave behind the past.")
    ] = True,
    maximum: Maximum = None,
    exchange: Exchange = None,
    user: User = None,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """Print what is published to a topic: first the past, then each event as it comes, none left out."""
    from signalbox.cli.shared.signals import Ending
    from signalbox.clients.live.cursor import Cursor
    from signalbox.live.wamp.patterns import TopicPattern

    cursor = Cursor(TopicPattern.parse(topic, match), _past(last, since))
    ending = Ending()
    with ending.awaited(), joining(aws=aws, stage=stage, exchange=exchange, user=user) as client:
        for number, event in enumerate(events(client, cursor, ending, follow=follow), start=1):
            _print(json.dumps(document(event)) if as_json else _line(event))
            if number == maximum:
                return


def watch(
    *,
    record: Annotated[str, typer.Argument(help="Topic to which a record's states are published.", metavar="RECORD")],
    maximum: Maximum = None,
    exchange: Exchange = None,
    user: User = None,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """Print a record's latest state, then what changes."""
    from signalbox.cli.shared.signals import Ending
    from signalbox.clients.live.cursor import Cursor
    from signalbox.live.wamp.patterns import TopicPattern

    cursor = Cursor(TopicPattern.parse(record), get_retained=True)
    ending, state = Ending(), dict[str, object]()
    with ending.awaited(), joining(aws=aws, stage=stage, exchange=exchange, user=user) as client:
        for number, event in enumerate(events(client, cursor, ending), start=1):
            before, state = state, fields(event.payload)
            if as_json:
                _print(json.dumps(document(event)))
            else:
                _print("\n".join([_heading(event), *(f"  {change}" for change in changes(before, state))]))
            if number == maximum:
                return


def _past(last: int | None, since: str | None) -> "BackfillStart | None":
    from signalbox.live.wamp.options import AfterTime, LastEvents

    if since is None:
        count = LINES if last is None else last
        return LastEvents(count) if count else None
    if last is not None:
        raise RejectedError("--last and --since do not go together: say how many events, or since when")
    return AfterTime(_moment(since))


def _moment(text: str) -> datetime:
    from signalbox.live.wamp.options import parse_timestamp

    moment = parse_timestamp(text)
    return moment or datetime.now(UTC) - timedelta(seconds=seconds(text, "--since") or 0)


def document(event: "ReceivedEvent") -> dict[str, object]:
    """Return an event for programs."""
    return {
        "topic": event.topic,
        "sequence": event.sequence,
        "at": event.at and event.at.isoformat(),
        "publication": event.publication,
        "args": list(event.payload.arguments),
        "kwargs": dict(event.payload.keywords),
        "headers": dict(event.headers),
        "retained": event.is_retained,
        "omitted_bytes": event.omitted_bytes,
    }


def fields(payload: "Payload") -> dict[str, object]:
    """Return a record's state: an object that was published, or whatever else was."""
    first = payload.arguments[0] if payload.arguments else None
    if isinstance(first, dict):
        return {**first, **payload.keywords}
    named = {} if not payload.arguments else {"value": first if len(payload.arguments) == 1 else [*payload.arguments]}
    return {**named, **payload.keywords}


def changes(before: "Mapping[str, object]", after: "Mapping[str, object]") -> "Iterator[str]":
    """Yield what is another now, a line for each field."""
    for name in {**before, **after}:
        if name not in before:
            yield f"{name}: {_shown(after[name])}"
        elif before[name] != after.get(name, NOTHING):
            yield f"{name}: {_shown(before[name])} → {_shown(after[name]) if name in after else NOTHING}"


def _line(event: "ReceivedEvent") -> str:
    return f"{_heading(event)}  {_text(event)}"


def _heading(event: "ReceivedEvent") -> str:
    at = event.at.astimezone().isoformat(sep=" ", timespec="milliseconds")[:23] if event.at else NOTHING
    number = "" if event.sequence is None else f" #{event.sequence}"
    return f"{at}  {event.topic}{number}"


def _text(event: "ReceivedEvent") -> str:
    if event.omitted_bytes is not None:
        return f"({event.omitted_bytes:,} bytes, too large for a connection)"
    words = [_shown(value) for value in event.payload.arguments]
    return " ".join([*words, *(f"{name}={_shown(value)}" for name, value in event.payload.keywords.items())])


def _shown(value: object) -> str:
    return value.rstrip("\n") if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _print(text: str) -> None:
    print_line(text)
    sys.stdout.flush()
