"""Options of `signalbox subscribe` in groups: queue, filter, limits and stage."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from signalbox.cli.exchange.stage import User, seconds
from signalbox.cli.shared.plain_help import PlainHelpCommand
from signalbox.cli.shared.stage import Aws, Stage
from signalbox.sarracenia.formats.topics import V03_PREFIX
from signalbox.sarracenia.subscription.duplicates import Basis
from signalbox.sarracenia.subscription.limits import DEFAULT_ATTEMPTS, PAUSE, Limits

FILTER_LINES = "lines"
STATE_DIRECTORY = Path(".signalbox", "subscriptions")


class OrderedFilterCommand(PlainHelpCommand):
    """A command that records the order of `--accept`, `--reject` and `--directory`, on which the filter depends."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - Typer's own class of contexts
        """Store the pairs of option and value in `ctx.meta`, then parse as Typer does."""
        values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        given = {name: iter(values.get(name) or ()) for name in ("accept", "reject", "directory")}
        ctx.meta[FILTER_LINES] = [(str(one.name), next(given[str(one.name)])) for one in order if one.name in given]
        return super().parse_args(ctx, args)


def filter_lines(context: typer.Context) -> Iterable[tuple[str, str]]:
    """Return the filter options and their values in the order of the command line."""
    lines: list[tuple[str, str]] = context.meta[FILTER_LINES]
    return lines


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """Options of the queue: its name, declaration and bindings."""

    queue: Annotated[
        str, typer.Option(help="Queue, such as q_alice_weather; instances that use it share messages.", metavar="NAME")
    ]
    exchange: Annotated[
        str | None, typer.Option(help="Declare the queue and bind it to this exchange.", metavar="NAME")
    ] = None
    subtopic: Annotated[
        list[str] | None,
        typer.Option(help="Binding pattern; repeatable; # if not given.", metavar="PATTERN"),
    ] = None
    topic_prefix: Annotated[str, typer.Option(help="First words of the binding patterns.", metavar="WORDS")] = (
        V03_PREFIX
    )
    expires: Annotated[
        str | None, typer.Option(help="Delete the queue after this time without a consumer.", metavar="DURATION")
    ] = None
    message_ttl: Annotated[
        str | None, typer.Option(help="Delete messages after this time in the queue.", metavar="DURATION")
    ] = None
    prefetch: Annotated[
        int | None, typer.Option(help="Maximum number of unacknowledged messages of one instance.", min=1)
    ] = None


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """Options of the filter, which is parsed from `filter_lines` because the order of the first three counts."""

    accept: Annotated[
        list[str] | None,
        typer.Option(help="Accept files whose URL matches, from its beginning; the first match decides.", metavar="RE"),
    ] = None
    reject: Annotated[
        list[str] | None,
        typer.Option(help="Reject files whose URL matches, from its beginning; the first match decides.", metavar="RE"),
    ] = None
    directory: Annotated[
        list[str] | None,
        typer.Option(help="Destination of files that a later --accept matches; below --download.", metavar="DIR"),
    ] = None
    reject_unmatched: Annotated[
        bool, typer.Option("--reject-unmatched", help="Reject files that match no --accept and no --reject.")
    ] = False


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """Options of duplicates, ages and attempts."""

    duplicates: Annotated[str | None, typer.Option(help="Drop duplicates within this time.", metavar="DURATION")] = None
    duplicates_by: Annotated[Basis, typer.Option(help="Properties that duplicates share.")] = Basis.PATH
    message_age: Annotated[str | None, typer.Option(help="Drop messages older than this.", metavar="DURATION")] = None
    file_age: Annotated[
        str | None, typer.Option(help="Drop files modified longer ago than this.", metavar="DURATION")
    ] = None
    attempts: Annotated[int, typer.Option(help="Maximum number of attempts for each file.", min=1)] = DEFAULT_ATTEMPTS
    pause: Annotated[
        str,
        typer.Option(
            help="Delay before the second attempt; each further delay is 3 times as long.", metavar="DURATION"
        ),
    ] = f"{PAUSE.total_seconds():g}s"

    def limits(self) -> Limits:
        """Return the limits. Raises `RejectedError` for an invalid duration."""
        return Limits(
            message_age=limit(self.message_age, "--message-age"),
            file_age=limit(self.file_age, "--file-age"),
            duplicates_ttl=limit(self.duplicates, "--duplicates"),
            basis=self.duplicates_by,
            attempts=self.attempts,
            pause=limit(self.pause, "--pause") or timedelta(0),
        )


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of the run: state on disk, end and output."""

    state_dir: Annotated[Path, typer.Option(help="Directory for duplicates and failed messages.", metavar="DIR")] = (
        STATE_DIRECTORY
    )
    count: Annotated[int | None, typer.Option(help="End after this number of messages.", min=1)] = None


@dataclass(frozen=True, slots=True)
class StageOptions:
    """Options that select the stage and the user."""

    user: User = None
    aws: Aws = False
    stage: Stage = "signalbox"


def duration(text: str | None, option: str) -> timedelta | None:
    """Return a duration such as `5m`, zero for `never`, or None. Raises `RejectedError`."""
    found = seconds(text, option)
    return None if found is None else timedelta(seconds=found)


def limit(text: str | None, option: str) -> timedelta | None:
    """Return a duration such as `5m`, or None for `never`, for zero and for None. Raises `RejectedError`."""
    return duration(text, option) or None
