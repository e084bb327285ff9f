"""The command `signalbox subscribe`: prints or downloads the files announced to a queue."""

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.cli.exchange.stage import exchanges, note_sqs_name
from signalbox.cli.sarracenia.option_groups import with_option_groups
from signalbox.cli.sarracenia.subscribe_options import (
    FilterOptions,
    LimitOptions,
    QueueOptions,
    RunOptions,
    StageOptions,
    duration,
    filter_lines,
)
from signalbox.cli.shared.nearest import suggestion
from signalbox.cli.shared.stage import say
from signalbox.sarracenia.formats.topics import binding_key

if TYPE_CHECKING:
    import boto3

    from signalbox.cli.shared.signals import Ending
    from signalbox.clients.exchange.client import ExchangeClient
    from signalbox.clients.sarracenia.file_subscription import FileSubscription, QueueDeclaration
    from signalbox.clients.sarracenia.message_loop import MessageLoop
    from signalbox.sarracenia.subscription.filters import FileFilter

ALL = "#"
LINE = re.compile(r"^line \d+, ", re.MULTILINE)


@with_option_groups
def subscribe(
    context: typer.Context,
    *,
    queue_options: QueueOptions,
    filter_options: FilterOptions,
    download: Annotated[
        Path | None, typer.Option(help="Download files into this directory; if not given, print.", metavar="DIR")
    ] = None,
    limit_options: LimitOptions,
    run_options: RunOptions,
    stage_options: StageOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each message.")] = False,
) -> None:
    """Print or download announced files; of instances that share a queue, each file goes to one."""
    from signalbox.clients.sarracenia.file_subscription import FileSubscription
    from signalbox.clients.sarracenia.subscriber import MessageOutcome

    subscription = FileSubscription(
        queue_options.queue,
        _filter(context, filter_options),
        limit_options.limits(),
        download,
        run_options.state_dir,
        queue_options.prefetch,
        run_options.count,
    )
    declaration = _declaration(queue_options)
    with exchanges(
        aws=stage_options.aws,
        stage=stage_options.stage,
        user=stage_options.user,
        begins=f"announcements of {subscription.queue}",
    ) as client:
        if declaration is not None:
            _check_exchange(declaration.exchange, client)
            _declare(declaration, client, subscription.queue)
        loop = _run(subscription, client, stage_options, as_json=as_json)
    raise typer.Exit(1 if loop.counts[MessageOutcome.GIVEN_UP] else 0)


def _filter(context: typer.Context, options: FilterOptions) -> "FileFilter":
    """Return the filter of the options. Raises `InvalidFilter`, which names them."""
    from signalbox.filters.patterns import compile_anchored
    from signalbox.sarracenia.subscription.filters import FileFilter, InvalidFilter

    try:
        return FileFilter.parse(filter_lines(context), compile_anchored, accept_unmatched=not options.reject_unmatched)
    except InvalidFilter as error:
        # The lines of a file of sr3 are options here.
        raise InvalidFilter(LINE.sub("--", str(error))) from error


def _declaration(options: QueueOptions) -> "QueueDeclaration | None":
    from signalbox.clients.sarracenia.file_subscription import QueueDeclaration

    if options.exchange is None:
        return None
    patterns = [binding_key(one, prefix=options.topic_prefix) for one in options.subtopic or [ALL]]
    return QueueDeclaration(
        options.exchange,
        patterns,
        duration(options.expires, "--expires"),
        duration(options.message_ttl, "--message-ttl"),
        options.prefetch,
    )


def _check_exchange(exchange: str, client: "ExchangeClient") -> None:
    """Raise `NotFound` before a queue is declared for nothing."""
    from signalbox.exchange.control.errors import NotFound

    known = [one["exchange"] for one in client.exchanges()]
    if exchange not in known:
        raise NotFound(f"there is no exchange {exchange!r} that you may read{suggestion(exchange, known)}")


def _declare(declaration: "QueueDeclaration", client: "ExchangeClient", queue: str) -> None:
    note_sqs_name(declaration.declare(client, queue), queue)
    for pattern in declaration.bind(client, queue):
        say(f"{queue} gets what is announced to {declaration.exchange} as {pattern}")


def _run(
    subscription: "FileSubscription", client: "ExchangeClient", options: StageOptions, *, as_json: bool
) -> "MessageLoop":
    from signalbox.cli.sarracenia.result_printer import ResultPrinter
    from signalbox.cli.shared.signals import Ending

    ending = Ending()
    session = partial(_session, aws=options.aws, stage=options.stage)
    with subscription.opened(client, session, ResultPrinter(as_json=as_json), ending) as loop:
        run_until_signal(loop, ending)
    return loop


def run_until_signal(loop: "MessageLoop", ending: "Ending") -> None:
    """Run a loop whose stop request is `ending`, then print its summary to standard error."""
    with ending.awaited():
        loop.run()
    say(loop.summary("ended"))
    ending.exit_if_interrupted()


def _session(*, aws: bool, stage: str) -> "boto3.Session":
    from signalbox.cli.shared.deployment import aws_session, find_deployment

    return aws_session() if aws else find_deployment(stage=stage).session()
