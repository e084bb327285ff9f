"""`signalbox consume`: prints the messages of a queue as they arrive."""

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from signalbox.cli.exchange.stage import UserOptions, exchanges
from signalbox.cli.shared.output import print_line
from signalbox.cli.shared.signals import Ending
from signalbox.cli.shared.stage import say
from signalbox.clients.exchange.consumer import Consumer, ReceivedMessage
from signalbox.exchange.messages.deliveries import DeliveredMessage

LONG_POLL_SECONDS = 20
KEPT = 10_000  # the messages that `--no-ack` reads; all of them are invisible to others meanwhile
PATIENCE_SECONDS = 2  # with `--no-follow`: a long poll queries all servers of SQS, a short one only some


def consume(
    *,
    queue: Annotated[str, typer.Argument(help="Queue to consume.", metavar="QUEUE")],
    follow: Annotated[
        bool,
        typer.Option(
            "--follow/--no-follow", help="Wait for messages until interrupted, or exit when the queue is empty."
        ),
    ] = True,
    maximum: Annotated[
        int | None, typer.Option("--max", help="Number of messages after which to exit.", min=1, metavar="NUMBER")
    ] = None,
    ack: Annotated[
        bool,
        typer.Option(
            "--ack/--no-ack", help="Delete printed messages, or leave them in the queue, where they count as received."
        ),
    ] = True,
    prefetch: Annotated[
        int | None, typer.Option(help="Maximum number of unacknowledged messages; default: the queue's setting.", min=1)
    ] = None,
    options: UserOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one line a message.")] = False,
) -> None:
    """Print messages of a queue as they arrive. Any number of consumers may share a queue."""
    ending = Ending()
    with ending.awaited(), exchanges(options, begins=f"messages of {queue}") as client:
        with client.consumer(queue, prefetch=prefetch) as consumer:
            if follow and maximum is None:
                say("Ctrl-C ends it")
            printed = _Printer(consumer, ending, ack=ack, as_json=as_json).read(follow=follow, maximum=maximum)
        if not (printed or follow):
            say(f"no messages in {queue}")
        if consumer.expired:
            say(f"{consumer.expired} dropped because they exceeded the queue's message TTL")
        if consumer.unreadable:
            say(f"{consumer.unreadable} left in the queue because no exchange sent them; they become dead letters")
    ending.exit_if_interrupted()


@dataclass(frozen=True, slots=True)
class _Printer:
    """Prints messages from a consumer to standard output."""

    consumer: Consumer
    ending: Ending
    ack: bool
    as_json: bool

    def read(self, *, follow: bool, maximum: int | None) -> int:
        """Print messages until the maximum, a signal or, without `follow`, the queue's end; return their number."""
        printed = 0
        most = self.consumer.prefetch if self.ack else KEPT
        left = math.inf if maximum is None else maximum
        while left > 0 and not self.ending.is_due:
            # Never receive more than will be printed: a released message counts as received.
            self.consumer.prefetch = int(min(most, left if self.ack else left + self.consumer.unacknowledged))
            before = self._seen()
            taken = self._received(LONG_POLL_SECONDS if follow else PATIENCE_SECONDS)
            self._print_each(taken)
            printed += len(taken)
            left -= len(taken)
            if not follow and not taken and self._seen() == before:
                break
        return printed

    def _print_each(self, taken: Sequence[ReceivedMessage]) -> None:
        printed = []
        try:
            for one in taken:
                self._print(one.delivered)
                sys.stdout.flush()  # a reader that stops must not leave unprinted messages acknowledged
                printed.append(one)
        finally:
            if self.ack:
                self.consumer.ack(*printed)

    def _received(self, wait_seconds: int) -> Sequence[ReceivedMessage]:
        with self.ending.waiting():
            return self.consumer.receive(wait_seconds=wait_seconds)
        return ()  # after a signal

    def _seen(self) -> int:
        return self.consumer.expired + self.consumer.unreadable

    def _print(self, message: DeliveredMessage) -> None:
        if self.as_json:
            print_line(json.dumps(_document(message)))
            return
        facts = [message.key or "''", message.message_id, f"by {message.publisher}", f"via {message.exchange}"]
        if message.sequence is not None:
            facts.append(f"#{message.sequence}")
        print_line("  ".join([*facts, *(f"{name}={text}" for name, text in message.headers.items())]))
        print_line(f"  {message.body}")


def _document(message: DeliveredMessage) -> dict[str, object]:
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
