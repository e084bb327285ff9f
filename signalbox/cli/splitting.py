"""`signalbox split`: share a queue with the deployed consumer and with one another."""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.cli.output import print_line, print_table
from signalbox.errors import RejectedError

if TYPE_CHECKING:
    from signalbox.splitting.explaining import DescribedSession
    from signalbox.splitting.matching import Decision, SessionVerdict

app = typer.Typer(
    help="Share a queue with the deployed consumer and with one another, without stealing.", no_args_is_help=True
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON, one line a message.")]
Sessions = Annotated[
    Path,
    typer.Option(
        help='JSON list of {"session": NAME, "queues": {ID: FILTER}} in order of start; - for standard input.'
    ),
]
Messages = Annotated[Path, typer.Option(help="JSON list of SQS Message objects; - for standard input.")]
Queue = Annotated[str, typer.Option(help="Queue id, as the sessions name it.", metavar="ID")]
Sns = Annotated[bool, typer.Option("--sns", help="Messages come from SNS: filters see the attributes inside them too.")]


@app.callback()
def split() -> None:
    """Share a queue with the deployed consumer and with one another, without stealing."""


@app.command()
def explain(*, sessions: Sessions, queue: Queue, messages: Messages, sns: Sns = False, as_json: Json = False) -> None:
    """Tell who would get which message, and why: what each session's filter says of it."""
    from signalbox.languages import Languages
    from signalbox.splitting.explaining import as_document, explained, parse_messages, parse_sessions
    from signalbox.splitting.session_config import QueueId

    described = parse_sessions(_read_json(sessions), Languages())
    decisions = explained(parse_messages(_read_json(messages)), described, QueueId(queue), sns=sns)
    _say_what_is_not_split(described)
    if as_json:
        for number, decision in enumerate(decisions):
            print_line(json.dumps(as_document(number, decision)))
    else:
        print_table(["message", "goes to", "copies", "why"], _rows(decisions))


def _read_json(path: Path) -> object:
    try:
        text = (sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()).decode()
        return json.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise RejectedError(f"cannot read {str(path)!r}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise RejectedError(f"{str(path)!r} is not JSON: {error}") from error


def _rows(decisions: "Iterable[Decision]") -> "Iterator[tuple[str, str, str, str]]":
    from signalbox.splitting.matching import DEPLOYED

    for number, decision in enumerate(decisions):
        why = "\n".join(map(_reason, decision.verdicts)) or "no session is there to ask"
        yield str(number), decision.owner or DEPLOYED, ", ".join(decision.copies), why


def _reason(verdict: "SessionVerdict") -> str:
    from signalbox.splitting.matching import Outcome

    text = f"{verdict.session} ({verdict.mode}): {verdict.reason}"
    return f"{text}; its session would be cancelled" if verdict.outcome is Outcome.TOO_SLOW else text


def _say_what_is_not_split(sessions: "Iterable[DescribedSession]") -> None:
    for session in sessions:
        if session.config.other_brokers:
            sys.stderr.write(f"· not on SQS, so not split: {', '.join(session.config.other_brokers)}\n")
