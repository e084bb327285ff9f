"""`signalbox consume`: messages of a queue as they come."""

import json
import math
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.cli.exchange.stage import User, exchanges
from signalbox.cli.shared.output import print_line
from signalbox.cli.shared.stage import Aws, Stage, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from signalbox.cli.shared.signals import Ending
    from signalbox.clients.exchange.consumer import Consumer, ReceivedMessage
    from signalbox.exchange.messages.properties import DeliveredMessage

LONG_POLL_SECONDS = 20
KEPT = 10_000  # messages that `--no-ack` looks at; all of them are kept from others meanwhile
PATIENCE_SECONDS = 2  # with `--no-follow`: a long poll asks all servers of SQS, a short one some


def consume(
    *,
    queue: Annotated[str, typer.Argument(help="Queue to consume.", metavar="QUEUE")],
    follow: Annotated[
        bool, typer.Option("--follow/--no-follow", help="Wait for more until interrupted, or leave when it is empty.")
    ] = True,
    maximum: Annotated[
        int | None, typer.Option("--max", help="Messages after which to leave.", min=1, metavar="NUMBER")
    ] = None,
    ack: Annotated[
        bool,
        typer.Option(
            "--ack/--no-ack", help="Take them out of the queue, or leave them there, where they count as received."
        ),
    ] = True,
    prefetch: Annotated[
        int | None, typer.Option(help="Messages to take at a time; the queue's own number if not given.", min=1)
    ] = None,
    user: User = None,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one line a message.")] = False,
) -> None:
    """Print messages of a queue as they come; any number of consumers may share it."""
    from signalbox.cli.shared.signals import Ending

    ending = Ending()
    with ending.awaited(), exchanges(aws=aws, stage=stage, user=user) as client:
        with client.consumer(queue, prefetch=prefetch) as consumer:
            _Printer(consumer, ending, ack=ack, as_json=as_json).read(follow=follow, maximum=maximum)
        if consumer.expired:
            say(f"{consumer.expired} dropped, since they were older than the queue lets messages become")
        if consumer.unreadable:
            say(f"{consumer.unreadable} left to be dead letters, since they came through no exchange")


@dataclass(frozen=True, slots=True)
class _Printer:
    """Messages on their way from a queue to standard output."""

    consumer: "Consumer"
    ending: "Ending"
    ack: bool
    as_json: bool

    def read(self, *, follow: bool, maximum: int | None) -> None:
        """Print messages until there were so many, until a signal comes, or until the queue is empty."""
        most = self.consumer.prefetch if self.ack else KEPT
        left = math.inf if maximum is None else maximum
        while left > 0 and not self.ending.is_due:
            # Never more than are to be printed: what is given back counts as received.
            self.consumer.prefetch = int(min(most, left if self.ack else left + self.consumer.unacknowledged))
            before = self._seen()
            taken = self._received(LONG_POLL_SECONDS if follow else PATIENCE_SECONDS)
            self._print_each(taken)
            left -= len(taken)
            if not follow and not taken and self._seen() == before:
                return

    def _print_each(self, taken: "Sequence[ReceivedMessage]") -> None:
        printed = []
        try:
            for one in taken:
                self._print(one.delivered)
                sys.stdout.flush()  # or those behind one that nobody reads any more would count as printed
                printed.append(one)
        finally:
            if self.ack:
                self.consumer.ack(*printed)

    def _received(self, wait_seconds: int) -> "Sequence[ReceivedMessage]":
        with self.ending.waiting():
            return self.consumer.receive(wait_seconds=wait_seconds)
        return ()  # a signal came

    def _seen(self) -> int:
        return self.consumer.expired + self.consumer.unreadable

    def _print(self, message: "DeliveredMessage") -> None:
        if self.as_json:
            print_line(json.dumps(_document(message)))
            return
        facts = [message.key or "''", message.message_id, f"by {message.publisher}", f"via {message.exchange}"]
        if message.sequence is not None:
            facts.append(f"#{message.sequence}")
        print_line("  ".join([*facts, *(f"{name}={text}" for name, text in message.headers.items())]))
        print_line(f"  {message.body}")


def _document(message: "DeliveredMessage") -> dict[str, object]:
    return {
        "routing_key": message.key,
        "exchange": message.exchange,
        "message_id": message.message_id,
        "publisher": message.publisher,
        "published_at": message.published_at.isoformat(),
        "sequence": message.sequence,
        "expires_at": None if message.expires_at is None else message.expires_at.isoformat(),
        "headers": dict(message.headers),
        "body": message.body,
    }
