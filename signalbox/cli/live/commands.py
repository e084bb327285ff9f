"""The commands `signalbox tail` and `signalbox watch`, which print live events, and `signalbox sign-out`."""

import json
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from signalbox.cli.exchange.stage import seconds
from signalbox.cli.live.stage import JoinOptions, events, joining
from signalbox.cli.shared.output import print_json, print_line
from signalbox.cli.shared.signals import Ending
from signalbox.cli.shared.stage import say
from signalbox.clients.live.cursor import PatternCursor, ReceivedEvent
from signalbox.errors import RejectedError
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.options import AfterTime, BackfillStart, LastEvents, parse_timestamp
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

LINES = 10  # the default of `tail` in coreutils
ABSENT = "-"

Json = Annotated[bool, typer.Option("--json", help="Print JSON, one line per event.")]
Maximum = Annotated[
    int | None, typer.Option("--max", help="Exit after this number of events.", min=1, metavar="NUMBER")
]


def tail(
    *,
    topic: Annotated[str, typer.Argument(help="Topic or topic pattern.", metavar="TOPIC")],
    match: Annotated[
        MatchPolicy,
        typer.Option(help="TOPIC is a topic, a prefix, or a pattern in which an empty word matches any word."),
    ] = MatchPolicy.EXACT,
    last: Annotated[
        int | None, typer.Option(help=f"Number of past events; default {LINES} without --since.", min=0)
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Start with events published since a time, or since an age such as 5m.")
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow/--no-follow", help="Wait for more events until interrupted, or exit after the past events."
        ),
    ] = True,
    maximum: Maximum = None,
    access: JoinOptions,
    as_json: Json = False,
) -> None:
    """Print the events of a topic: past events first, then each new event, without gaps."""
    cursor = PatternCursor(TopicPattern.parse(topic, match), _past(last, since))
    ending = Ending()
    with ending.awaited(), joining(access) as client:
        for number, event in enumerate(events(client, cursor, ending, follow=follow), start=1):
            _print(json.dumps(document(event)) if as_json else _line(event, has_topic=match is not MatchPolicy.EXACT))
            if number == maximum:
                return
    ending.exit_if_interrupted()


def watch(
    *,
    record: Annotated[str, typer.Argument(help="Topic of a record's states.", metavar="RECORD")],
    maximum: Maximum = None,
    access: JoinOptions,
    as_json: Json = False,
) -> None:
    """Print the latest state of a record, then its changes."""
    cursor = PatternCursor(TopicPattern.parse(record), get_retained=True)
    ending, state = Ending(), dict[str, object]()
    with ending.awaited(), joining(access) as client:
        for number, event in enumerate(events(client, cursor, ending), start=1):
            before, state = state, fields(event.payload)
            if as_json:
                _print(json.dumps(document(event)))
            else:
                _print(_heading(event), *(f"  {change}" for change in changes(before, state)))
            if number == maximum:
                return
    ending.exit_if_interrupted()


def sign_out(
    *,
    issuer: Annotated[str | None, typer.Option(help="Sign out of this identity provider only.", metavar="URL")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Revoke and forget the sign-ins that `--sign-in` has stored on this machine."""
    from signalbox.clients.identity.sign_ins import SignIns, state_folder
    from signalbox.clients.identity.signed_in import sign_out as end_sign_in

    stored = SignIns(state_folder())
    results = [
        {"issuer": one.asked.issuer, "client_id": one.asked.client_id, "revoked": end_sign_in(stored, one)}
        for one in stored.every()
        if issuer in (None, one.asked.issuer)
    ]
    if as_json:
        print_json(results)
        return
    for result in results:
        print_line(f"signed out of {result['issuer']}")
        if not result["revoked"]:
            say(f"{result['issuer']} has not confirmed it: what it has issued ends by itself, or in its own pages")
    if not results:
        print_line("no sign-in is stored")


def _past(last: int | None, since: str | None) -> BackfillStart | None:
    if since is None:
        count = LINES if last is None else last
        return LastEvents(count) if count else None
    if last is not None:
        raise RejectedError("--last and --since exclude each other: give a number of events or a time")
    return AfterTime(_moment(since))


def _moment(text: str) -> datetime:
    moment = parse_timestamp(text)
    return moment or datetime.now(UTC) - timedelta(seconds=seconds(text, "--since") or 0)


def document(event: ReceivedEvent) -> dict[str, object]:
    """Return an event as a JSON document."""
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


def fields(payload: Payload) -> dict[str, object]:
    """Return the state that an event publishes: its object's fields, or its arguments as `value`, and its keywords."""
    first = payload.arguments[0] if payload.arguments else None
    if isinstance(first, dict):
        return {**first, **payload.keywords}
    named = {} if not payload.arguments else {"value": first if len(payload.arguments) == 1 else [*payload.arguments]}
    return {**named, **payload.keywords}


def changes(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[str]:
    """Yield one line for each field that differs between two states."""
    for name in {**before, **after}:
        if name not in before:
            yield f"{name}: {_shown(after[name])}"
        elif before[name] != after.get(name, ABSENT):
            yield f"{name}: {_shown(before[name])} → {_shown(after[name]) if name in after else ABSENT}"


def _line(event: ReceivedEvent, *, has_topic: bool) -> str:
    return f"{_heading(event, has_topic=has_topic)}  {_text(event)}"


def _heading(event: ReceivedEvent, *, has_topic: bool = True) -> str:
    at = event.at.astimezone().isoformat(sep=" ", timespec="milliseconds")[:23] if event.at else ABSENT
    topic = [event.topic] if has_topic else []
    number = [] if event.sequence is None else [f"#{event.sequence}"]
    return "  ".join([at, " ".join([*topic, *number])]).rstrip()


def _text(event: ReceivedEvent) -> str:
    if event.omitted_bytes is not None:
        return f"({event.omitted_bytes:,} bytes, too large for a message)"
    words = [_shown(value) for value in event.payload.arguments]
    return " ".join([*words, *(f"{name}={_shown(value)}" for name, value in event.payload.keywords.items())])


def _shown(value: object) -> str:
    return value.rstrip("\n") if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _print(*lines: str) -> None:
    for line in lines:
        print_line(line)
    sys.stdout.flush()
