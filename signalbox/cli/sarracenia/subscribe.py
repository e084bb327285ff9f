"""`signalbox subscribe`: prints or downloads what is announced to a queue."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from signalbox.cli.exchange.stage import User, exchanges, note_sqs_name, seconds
from signalbox.cli.shared.stage import Aws, Stage, say
from signalbox.sarracenia.formats.topics import V03_PREFIX, binding_key
from signalbox.sarracenia.subscription.duplicates import Basis
from signalbox.sarracenia.subscription.limits import DEFAULT_ATTEMPTS, PAUSE, Limits

if TYPE_CHECKING:
    import boto3

    from signalbox.clients.exchange.client import ExchangeClient

LINES = "lines"
ALL = "#"
STATES = Path(".signalbox", "subscriptions")


class Ordered(TyperCommand):
    """A command that knows in which order `--accept`, `--reject` and `--directory` were given, for that counts."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own class of contexts
        """Note the pairs of option and value in the context, then parse as always."""
        values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        given = {name: iter(values.get(name) or ()) for name in ("accept", "reject", "directory")}
        ctx.meta[LINES] = [(str(one.name), next(given[str(one.name)])) for one in order if one.name in given]
        return super().parse_args(ctx, args)


Accept = Annotated[list[str] | None, typer.Option(help="Take files whose URL matches from its start on.", metavar="RE")]
Reject = Annotated[list[str] | None, typer.Option(help="Do not; the first that matches counts.", metavar="RE")]
Directory = Annotated[
    list[str] | None, typer.Option(help="Where what the next --accept take is put; below --download.", metavar="DIR")
]
Subtopic = Annotated[
    list[str] | None,
    typer.Option(help="Bind the queue by this pattern; repeatable; # if not given.", metavar="PATTERN"),
]


def subscribe(
    context: typer.Context,
    *,
    queue: Annotated[str, typer.Option(help="Queue, such as q_alice_weather; instances share it.", metavar="NAME")],
    exchange: Annotated[
        str | None, typer.Option(help="Declare the queue and bind it to this one.", metavar="NAME")
    ] = None,
    subtopic: Subtopic = None,
    topic_prefix: Annotated[str, typer.Option(help="First words of the patterns.", metavar="WORDS")] = V03_PREFIX,
    expires: Annotated[
        str | None, typer.Option(help="Delete the queue when nobody consumed for so long.", metavar="DURATION")
    ] = None,
    message_ttl: Annotated[
        str | None, typer.Option(help="How long messages wait in the queue.", metavar="DURATION")
    ] = None,
    prefetch: Annotated[int | None, typer.Option(help="Messages that one instance takes at once.", min=1)] = None,
    accept: Accept = None,  # noqa: ARG001 - `Ordered` has them with their order
    reject: Reject = None,  # noqa: ARG001
    directory: Directory = None,  # noqa: ARG001
    reject_unmatched: Annotated[
        bool, typer.Option("--reject-unmatched", help="Take nothing that no --accept matches.")
    ] = False,
    download: Annotated[
        Path | None, typer.Option(help="Fetch the files into this directory; if not given, print.", metavar="DIR")
    ] = None,
    duplicates: Annotated[
        str | None, typer.Option(help="Drop duplicates of what came within this time.", metavar="DURATION")
    ] = None,
    duplicates_by: Annotated[Basis, typer.Option(help="What makes a duplicate.")] = Basis.PATH,
    message_age: Annotated[str | None, typer.Option(help="Drop older messages.", metavar="DURATION")] = None,
    file_age: Annotated[str | None, typer.Option(help="Drop files that changed before.", metavar="DURATION")] = None,
    attempts: Annotated[int, typer.Option(help="How often a file is tried.", min=1)] = DEFAULT_ATTEMPTS,
    pause: Annotated[
        str, typer.Option(help="Before the second try; three times as long before each further.", metavar="DURATION")
    ] = f"{PAUSE.total_seconds():g}s",
    state_dir: Annotated[
        Path, typer.Option(help="Where it is kept what was seen and what failed.", metavar="DIR")
    ] = STATES,
    count: Annotated[int | None, typer.Option(help="End after this many messages.", min=1)] = None,
    user: User = None,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one line a message.")] = False,
) -> None:
    """Print or download what is announced; several may share a queue, and then each file goes to one of them."""
    from signalbox.cli.sarracenia.follower import Following, Shown, fetching
    from signalbox.clients.sarracenia.subscriber import Outcome, Subscriber
    from signalbox.clients.sarracenia.subscriber_store import opened
    from signalbox.filters.patterns import compile_anchored
    from signalbox.sarracenia.rights.names import parse_queue_name, sqs_name
    from signalbox.sarracenia.subscription.filters import Filter

    wanted = Filter.parse(context.meta[LINES], compile_anchored, accept_unmatched=not reject_unmatched)
    limits = Limits(
        message_age=_time(message_age, "--message-age"),
        file_age=_time(file_age, "--file-age"),
        duplicates_ttl=_time(duplicates, "--duplicates"),
        basis=duplicates_by,
        attempts=attempts,
        pause=_time(pause, "--pause") or timedelta(0),
    )
    state_file = state_dir / f"{sqs_name(parse_queue_name(queue))}.sqlite"
    with exchanges(aws=aws, stage=stage, user=user) as client:
        if exchange is not None:
            settings = Settings(_asked(expires, "--expires"), _asked(message_ttl, "--message-ttl"), prefetch)
            settings.declare(client, queue)
            _bind(client, exchange, queue, [binding_key(one, prefix=topic_prefix) for one in subtopic or [ALL]])
        carry_out = fetching(download, wanted, partial(_session, aws=aws, stage=stage))
        with opened(state_file) as state, client.consumer(queue, prefetch=prefetch) as consumer:
            following = Following(consumer, state, Subscriber(carry_out, state, state, wanted, limits), count)
            following.run(Shown(as_json=as_json))
    raise typer.Exit(1 if following.counts[Outcome.GIVEN_UP] else 0)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a queue that somebody asked for; what is None stays as it is."""

    expires: timedelta | None
    message_ttl: timedelta | None
    prefetch: int | None

    def declare(self, client: "ExchangeClient", queue: str) -> None:
        """Have the queue."""
        told = client.declare_queue(queue, expires=self.expires, message_ttl=self.message_ttl, prefetch=self.prefetch)
        note_sqs_name(told, queue)


def _bind(client: "ExchangeClient", exchange: str, queue: str, patterns: Sequence[str]) -> None:
    for pattern in patterns:
        client.bind(exchange, queue, pattern)
        say(f"{queue} gets what is announced to {exchange} as {pattern}")


def _asked(text: str | None, option: str) -> timedelta | None:
    found = seconds(text, option)
    return None if found is None else timedelta(seconds=found)


def _time(text: str | None, option: str) -> timedelta | None:
    """Return how long a person said, or None for `never` and for nothing."""
    return _asked(text, option) or None


def _session(*, aws: bool, stage: str) -> "boto3.Session":
    from signalbox.cli.shared.deployment import aws_session, find_deployment

    return aws_session() if aws else find_deployment(stage=stage).session()
