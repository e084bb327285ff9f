"""`signalbox dead-letters`: lists the dead letters of all capabilities that the caller owns."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.cli.exchange.stage import UserOutputOptions, exchanges
from signalbox.cli.shared.output import print_list
from signalbox.cli.shared.stage import age, say
from signalbox.clients.dead_letters import DeadLetter
from signalbox.clients.dead_letters import dead_letters as letters_in
from signalbox.errors import RejectedError
from signalbox.exchange.model.names import dead_letter_name, is_existing
from signalbox.nearest import suggestion
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName

if TYPE_CHECKING:
    from signalbox.clients.exchange.client import ExchangeClient

SHOWN = 100  # of a queue
CALLS_AT_ONCE = 10
# The outputs of the stage's own dead-letter queues, by capability, each with the remedy for its messages.
STAGE_QUEUES = {
    "DeadLetterQueueUrl": ("rendezvous", "nothing: the client makes a new offer"),
    "SplitDeadLetterQueueUrl": ("splitting", "send it to its queue again, or delete it"),
    "ExchangeDeadLetterQueueUrl": ("exchange", "nothing: repeat the command, or publish again"),
    "LiveOrderedDeadLetterQueueUrl": ("live", "nothing: clients repeat their requests"),
}
CORRECT = "publish it again, corrected, and delete it: no replay can"
COLUMNS = ("capability", "name", "id", "age", "receives", "reason", "remedy")


@dataclass(frozen=True, slots=True)
class _Source:
    """A dead-letter queue: `name` is that of the exchange or queue that it belongs to, or its own."""

    capability: str
    name: str
    url: str
    remedy: str

    def remedy_of(self, letter: DeadLetter) -> str:
        """Return the remedy of a dead letter."""
        return self.remedy if letter.is_replayable or self.capability != "exchange" else CORRECT


def dead_letters(
    *,
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Show only dead letters of these names.", metavar="NAME", show_default=False),
    ] = None,
    maximum: Annotated[
        int, typer.Option("--max", help="Number of dead letters to show of each queue.", min=1, metavar="NUMBER")
    ] = SHOWN,
    options: UserOutputOptions,
) -> None:
    """List the dead letters that you own, with reason and remedy; they stay where they are."""
    with exchanges(options) as client:
        sources = _chosen([*_declared(client), *_of_stage(client, options)], names or ())
        with ThreadPoolExecutor(CALLS_AT_ONCE) as pool:
            read = list(pool.map(partial(_read, client, maximum=maximum), sources))
    found = [(source, letter) for source, (letters, _) in zip(sources, read, strict=True) for letter in letters]
    documents = [_document(source, letter) for source, letter in found]
    rows = (_row(source, letter) for source, letter in found)
    print_list(documents, COLUMNS, rows, none="no dead letters", as_json=options.as_json)
    if found:
        say("receives: by consumers and by each list before this one")
    for source, (letters, count) in zip(sources, read, strict=True):
        if count > len(letters):
            say(f"{source.name} has about {count}, of which {len(letters)} are shown; not those in flight")


def _declared(client: "ExchangeClient") -> Iterator[_Source]:
    """Yield the dead-letter queues of the exchanges and queues that the caller owns; administrators own all."""
    owned = (
        *((one["exchange"], one["created_by"], one["sqs_name"]) for one in client.exchanges()),
        *((one["queue"], one["owner"], one["sqs_name"]) for one in client.queues() if not is_existing(one["queue"])),
    )
    for name, owner, sqs_name in owned:
        if client.user in (None, owner):
            url = client.url_prefix + dead_letter_name(QueueName(sqs_name))
            # The name of a queue is its owner's text, and this is for a shell.
            replay = shlex.join(["signalbox", "replay", "--dead-letters", name, "--into", name])
            yield _Source("exchange", name, url, replay)


def _of_stage(client: "ExchangeClient", options: UserOutputOptions) -> Iterator[_Source]:
    if client.user is None:
        outputs: Mapping[str, str] = options.deployment().outputs
        for name, (capability, remedy) in STAGE_QUEUES.items():
            if url := outputs.get(name):
                yield _Source(capability, url.rpartition("/")[2], url, remedy)


def _chosen(sources: Sequence[_Source], names: Sequence[str]) -> Sequence[_Source]:
    """Return the sources with these names, or all. Raises `RejectedError` for others."""
    known = {one.name for one in sources}
    if unknown := [name for name in names if name not in known]:
        problems = (f"you own no exchange and no queue {name!r}{suggestion(name, known)}" for name in unknown)
        raise RejectedError("\n".join(problems))
    return [one for one in sources if not names or one.name in names]


def _read(client: "ExchangeClient", source: _Source, *, maximum: int) -> tuple[Sequence[DeadLetter], int]:
    try:
        exchange = ExchangeName(source.name) if source.name.startswith("x") else None
        return letters_in(client.sqs, source.url, exchange=exchange, maximum=maximum)
    except client.sqs.exceptions.QueueDoesNotExist:
        return (), 0  # deleted meanwhile


def _document(source: _Source, letter: DeadLetter) -> dict[str, object]:
    place = {"capability": source.capability, "name": source.name, "queue_url": source.url}
    return {**place, **asdict(letter), "sent_at": letter.sent_at.isoformat(), "remedy": source.remedy_of(letter)}


def _row(source: _Source, letter: DeadLetter) -> tuple[str, ...]:
    texts = (letter.message_id, age(letter.sent_at.isoformat()), str(letter.receives), letter.reason)
    return (source.capability, source.name, *texts, source.remedy_of(letter))
