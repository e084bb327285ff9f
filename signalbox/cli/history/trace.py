"""The command `signalbox trace`, which shows the way of one message through all capabilities."""

import shutil
import sys
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.cli.exchange.stage import client_of, seconds
from signalbox.cli.history.kept_filters import filter_verdicts
from signalbox.cli.history.trace_text import filter_lines, story_lines, verdict_lines
from signalbox.cli.shared.output import print_json, print_line
from signalbox.cli.shared.stage import OutputOptions, output, say
from signalbox.errors import RejectedError, SignalboxError
from signalbox.exchange.matching.verdicts import BindingVerdict, binding_verdicts
from signalbox.exchange.messages.headers import file_id
from signalbox.exchange.model.topics import RoutingKey
from signalbox.history.lookup import EventWindow
from signalbox.history.trace.search import LinkedEvents, NotTraced, linked_events
from signalbox.history.trace.story import Story, stories

if TYPE_CHECKING:
    from signalbox.clients.deployment import Deployment

DEFAULT = "7d"
LONGEST = timedelta(days=3_650)  # each day is a request
NAMES = ("q_", "xs_", "xpublic")
MAXIMUM_KEYS = 5
MAXIMUM_STORIES = 5  # on one screen; JSON has all


def trace(
    *,
    asked: Annotated[
        str,
        typer.Argument(
            help="Id of a message, publication, client or event, or the path of an announced file.", metavar="ID"
        ),
    ],
    over: Annotated[
        str, typer.Option(help="Time before now to search, such as 36h or 30d.", metavar="DURATION")
    ] = DEFAULT,
    bindings: Annotated[
        bool, typer.Option("--bindings/--no-bindings", help="Evaluate the present bindings of the message's exchanges.")
    ] = True,
    filters: Annotated[
        bool,
        typer.Option("--filters/--no-filters", help="Evaluate the filters of running sessions on a kept message."),
    ] = True,
    options: OutputOptions,
) -> None:
    """Trace one message: its publisher, copies, retries, sessions, connections and last known place."""
    now, span, id_ = datetime.now(UTC), _span(over), _id(asked)
    _require_parquet()
    window = EventWindow(now - span, now + timedelta(minutes=1))  # clocks differ
    deployment = options.deployment()
    found, unreadable = _found(deployment, id_, window, over=over)
    found_stories = stories(found.events)
    if options.as_json:
        now_of = {
            "bindings_now": list(map(asdict, _verdicts(deployment, found_stories) if bindings else ())),
            "filters_now": list(map(asdict, filter_verdicts(deployment, found_stories) if filters else ())),
        }
        print_json(_document(id_, window, found, found_stories) | {"unreadable": unreadable} | now_of)
        return
    _print(found_stories, found)
    shown = found_stories[:MAXIMUM_STORIES]
    for line in verdict_lines(_verdicts(deployment, shown)) if bindings else ():
        print_line(line)
    for line in filter_lines(filter_verdicts(deployment, shown)) if filters else ():
        print_line(line)


def _span(text: str) -> timedelta:
    number = seconds(text, "--over")
    if not number or number > LONGEST.total_seconds():
        raise RejectedError(f"--over: expected a time such as 36h or 30d, at most {LONGEST.days}d, not {text!r}")
    return timedelta(seconds=number)


def _id(text: str) -> str:
    """Return an id without spaces around it. Raises `RejectedError` for a text that no id can be."""
    asked = text.strip()
    if not asked:
        raise RejectedError("give the id of a message, or the path of a file")
    try:
        asked.encode()
    except UnicodeEncodeError as error:  # bytes of the command line that are not UTF-8
        raise RejectedError(f"{asked!r} is no id: it is not UTF-8") from error
    return asked


def _require_parquet() -> None:
    """Raise `RejectedError` without the package that reads Parquet files, which is optional for its size."""
    if find_spec("pyarrow") is None:
        raise RejectedError("trace reads Parquet files with pyarrow: install the extra `history` of this package")


def _found(deployment: "Deployment", asked: str, window: EventWindow, *, over: str) -> tuple[LinkedEvents, list[str]]:
    """Return the events of what is asked, and the keys of objects that are not readable. Raises `NotTraced`."""
    from signalbox.aws.history.event_lookup import S3EventLookup
    from signalbox.clients.deployment import LocalDeployment

    bucket = output(deployment, "HistoryBucket")
    say(f"reading the last {over} of the history of {deployment.place}")
    lookup = S3EventLookup(deployment.session().client("s3"), bucket, now=datetime.now(UTC))
    found = linked_events(lookup, [asked, file_id(asked)], window)
    usage = lookup.usage
    say(f"read {usage.bytes:,} bytes in {usage.requests} requests")
    if unreadable := lookup.unreadable:
        say(f"{len(unreadable)} objects are damaged or no files of events, and were left out: {_some(unreadable)}")
    if not found.events:
        raise NotTraced(_missing(asked, over=over, is_local=isinstance(deployment, LocalDeployment)))
    return found, unreadable


def _some(keys: list[str]) -> str:
    more = len(keys) - MAXIMUM_KEYS
    return ", ".join(keys[:MAXIMUM_KEYS]) + (f" and {more} more" if more > 0 else "")


def _missing(asked: str, *, over: str, is_local: bool) -> str:
    """Return that nothing was found, with what may help."""
    arrival = "an event is there a second after it happened" if is_local else "an event is there after about a minute"
    further = "`--over 30d` searches further back, as far as the stage keeps its history"
    forms = "give the id as SQS, `publish`, a log or a client shows it, or a file's path relative to its base URL"
    if asked.startswith(NAMES):
        forms = f"{asked!r} looks like the name of a queue or an exchange: `signalbox status {asked}` shows it"
    return f"no event of the last {over} names {asked!r}\n{arrival}; {further}\n{forms}"


def _print(found_stories: list[Story], found: LinkedEvents) -> None:
    for number, story in enumerate(found_stories[:MAXIMUM_STORIES]):
        if number:
            print_line()
        for line in story_lines(story, width=_width()):
            print_line(line)
    sys.stdout.flush()  # before the bindings are read
    if len(found_stories) > MAXIMUM_STORIES:
        say(f"{len(found_stories) - MAXIMUM_STORIES} more messages: `--json` has them, and `trace` of one of their ids")
    if not found.is_complete:
        say("there are more linked events than one trace reads: trace one of the ids shown")


def _width() -> int | None:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _verdicts(deployment: "Deployment", found_stories: Iterable[Story]) -> list[BindingVerdict]:
    """Return the verdicts of the bindings that exist now; none if the caller may not read them."""
    routed = {
        (one.topic, exchange): None for one in found_stories if one.topic is not None for exchange in one.exchanges
    }
    if not routed:
        return []
    try:
        client = client_of(deployment)

        def bindings_of(exchange: str) -> list[tuple[str, str, bool]]:
            documents = client.bindings(exchange)
            return [(one.get("queue") or one["destination"], one["pattern"], "queue" not in one) for one in documents]

        return [
            verdict
            for topic, exchange in routed
            for verdict in binding_verdicts(bindings_of, [exchange], RoutingKey(topic))
        ]
    except SignalboxError as error:
        say(f"the bindings as they are now could not be read: {error}")
        return []


def _document(
    asked: str,
    window: EventWindow,
    found: LinkedEvents,
    found_stories: list[Story],
) -> dict[str, object]:
    return {
        "asked": asked,
        "from": window.start.isoformat(),
        "to": window.end.isoformat(),
        "complete": found.is_complete,
        "messages": [one.document() for one in found_stories],
    }
