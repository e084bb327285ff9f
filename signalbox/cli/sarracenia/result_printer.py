"""Output of `signalbox subscribe`: a line for each message, problems on standard error, and a status line."""

import json
import sys
from dataclasses import dataclass, field
from shutil import get_terminal_size

from signalbox.cli.shared.output import print_line
from signalbox.cli.shared.stage import say
from signalbox.clients.sarracenia.subscriber import PROBLEMS, MessageResult

ERASE = "\r\x1b[2K"  # moves to the beginning of the terminal's line and clears it


@dataclass(frozen=True, slots=True)
class ResultPrinter:
    """Prints results for people or as JSON; on a terminal also a status line."""

    as_json: bool
    is_live: bool = field(default_factory=lambda: sys.stderr.isatty())  # noqa: PLW0108 - not the stream of the import

    def result(self, result: MessageResult) -> None:
        """Print the result of a message; results that are problems go to standard error."""
        self.status("")
        if self.as_json:
            print_line(json.dumps(result.as_document()))
            sys.stdout.flush()
            return
        announced = result.announcement
        where = result.received.routing_key if announced is None else f"{announced.base_url} {announced.path}"
        text = f"{result.outcome}  {where}{f'  ({result.reason})' if result.reason else ''}"
        printable = text.encode(errors="backslashreplace").decode()
        if result.outcome in PROBLEMS:
            say(printable)
        else:
            print_line(printable)
            sys.stdout.flush()

    def status(self, text: str) -> None:
        """Replace the status line; does nothing when standard error is not a terminal."""
        # Not by rich: it would also print results on the terminal, broken into lines.
        if self.is_live:
            sys.stderr.write(ERASE + text[: get_terminal_size().columns - 1])
            sys.stderr.flush()
