"""The `signalbox` command: its options before a command, and its exit statuses."""

import errno
import os
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from signalbox import __version__
from signalbox.cli import INTERRUPTED
from signalbox.cli.commands import COMMANDS
from signalbox.cli.shared.output import escape_unencodable, print_error, print_line
from signalbox.cli.shared.signals import Interrupted
from signalbox.errors import RejectedError, SignalboxError

if TYPE_CHECKING:
    from botocore.exceptions import BotoCoreError, ClientError

REJECTED = 2
UNAVAILABLE = 1
# The words of typer's parser, which is pydantic.
PARSERS_WORDS = {
    "Value error, ": "",
    "Input should be a valid integer, unable to parse string as an integer": "expected a whole number",
    "Input should be a valid number, unable to parse string as a number": "expected a number",
    "Input should be": "expected a number",
}
REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free some space on that disk"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "this user must be allowed to write there"),
}
OF_A_STAGE = re.compile(r"No such option: (--aws|--stage|--json)\b")
CHOICE = re.compile(r"'(?P<given>[^']*)' is not one of (?P<expected>.*)")
GUESSES = re.compile(r"(?P<error>No such option: (?P<given>\S+)) \(Possible options: (?P<guesses>.*)\)")
QUOTED = re.compile(r"'([^']*)'")
ARGUMENT = re.compile(r"(?<=Missing argument ')\w+(?=')")

app = typer.Typer(
    name="signalbox",
    help="A serverless message broker on AWS.",
    cls=COMMANDS,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Subcommands inherit it.
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; an error of Signalbox or AWS ends in one line and an exit status."""
    escape_unencodable()
    try:
        # Not in Typer's own mode, which draws frames around errors and breaks their lines.
        sys.exit(app(prog_name="signalbox", standalone_mode=False))
    except SignalboxError as error:
        _end(str(error), REJECTED if isinstance(error, RejectedError) else UNAVAILABLE)
    except typer.TyperException as error:
        _end_usage(error)
    except typer.Abort:
        sys.exit(INTERRUPTED)
    except Interrupted as interruption:
        sys.exit(interruption.status)
    except _aws_errors() as error:
        from signalbox.cli.shared.aws_errors import explained

        _end(explained(error), UNAVAILABLE)
    except OSError as error:
        _end_file(error)


def _end_file(error: OSError) -> NoReturn:
    """End with the remedy of an error of files; raise one of another cause."""
    if isinstance(error, BrokenPipeError):
        # The reader of the output has closed it, as `head` does; the rest of the buffer goes to the null device.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(UNAVAILABLE)
    if error.errno not in REMEDIES:
        raise error
    _end(f"{error.strerror}: {error.filename or 'a file'}; {REMEDIES[error.errno]}", UNAVAILABLE)


def _end(text: str, status: int) -> NoReturn:
    print_error(text)
    sys.exit(status)


def _end_usage(error: typer.TyperException) -> NoReturn:
    """Print the error of a command line in one line, then the command that shows the help."""
    text = error.format_message()
    if "\n" in text or not text:  # the whole help, since the command has no words
        sys.stderr.write(text)
        sys.exit(error.exit_code)
    context = getattr(error, "ctx", None)
    help_hint = f"\n`{context.command_path} --help` shows the options" if context else ""
    if (misplaced := OF_A_STAGE.search(text)) and context and context.parent is None:
        help_hint = f"\ngive {misplaced[1]} after the command: `signalbox COMMAND … {misplaced[1]}`"
    _end(_readable(text) + help_hint, error.exit_code)


def _readable(text: str) -> str:
    """Return an error of the parser without its own words, and with the nearest of the values that it lists."""
    for own, ours in PARSERS_WORDS.items():
        text = text.replace(own, ours)
    text = ARGUMENT.sub(lambda name: name[0].upper(), text.rstrip("."))  # as in the help
    if guessed := GUESSES.fullmatch(text):  # with a likeness of 0.6, which the dashes of short options alone reach
        near = get_close_matches(guessed["given"], guessed["guesses"].split(", "), n=1, cutoff=0.7)
        return guessed["error"] + _meant(near)
    if choice := CHOICE.search(text):
        text += _meant(get_close_matches(choice["given"], QUOTED.findall(choice["expected"]), n=1))
    return text


def _meant(near: Sequence[str]) -> str:
    return f"; did you mean {near[0]!r}?" if near else ""


def _aws_errors() -> "tuple[type[BotoCoreError], type[ClientError]] | tuple[()]":
    """Return the error classes of AWS calls; none if no module of botocore is loaded, since the import is slow."""
    if "botocore" not in sys.modules:
        return ()
    from botocore.exceptions import BotoCoreError, ClientError

    return (BotoCoreError, ClientError)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value alone
    if wanted:
        print_line(f"signalbox {__version__}")
        raise typer.Exit


@app.callback()
def signalbox(
    *,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Handle the options before a command."""
