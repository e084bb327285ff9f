"""JSON that is nested about as deeply as Python parses is refused by the readers of messages, as other wrong JSON is.

Python's recursion limit counts all calls: a document that is only just parsed is too deep for a call further inside,
and the function that reads it would fail again and again.
"""

import base64
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from signalbox.control.envelope import Commands, Envelope
from signalbox.control.protocol import ControlReply
from signalbox.errors import RejectedError
from signalbox.exchange.control.command_reader import COMMANDS as EXCHANGE
from signalbox.exchange.messages.headers import announced_file
from signalbox.live.admin.command_reader import COMMANDS as LIVE
from signalbox.live.arvados import requests
from signalbox.live.identity.compact import read_unverified
from signalbox.live.outbox.items import parse_item
from signalbox.live.outbox.overview_calls import OverviewCall
from signalbox.live.router.publication_metadata import parse_metadata
from signalbox.live.session import inbox
from signalbox.live.wamp.codec import decode
from signalbox.rendezvous.wire.proxy import ProxyPoll
from signalbox.splitting.control.commands import COMMANDS as SPLITTING
from signalbox.splitting.model.filter_input import envelope_attributes
from signalbox.splitting.model.s3_objects import objects_of

Reader = Callable[[str], object]


def commands(table: Commands[object]) -> Reader:
    """Return a reader that takes a document as the value of every field of every command."""

    def read(document: str) -> None:
        for command, (fields, _) in table.items():
            for field in ("id", "reply", *fields):
                with suppress(RejectedError):
                    Envelope.parse(f'{{"id": "1", "command": "{command}", "{field}": {document}}}').command(table)

    return read


def in_token(document: str) -> object:
    part = base64.urlsafe_b64encode(f'{{"alg": {document}}}'.encode()).rstrip(b"=").decode()
    return read_unverified(f"{part}.{part}.AA")


READERS: dict[str, Reader] = {
    "commands of the exchange": commands(EXCHANGE),
    "commands of live": commands(LIVE),
    "commands of splitting": commands(SPLITTING),
    "an envelope": Envelope.parse,
    "a reply": ControlReply.parse,
    "a frame": decode,
    "a publication": lambda document: decode(f'[16,1,{{}},"a",[{document}]]'),
    "a frame of Arvados": lambda document: requests.decode(f'{{"filters":[["event_type","in",{document}]]}}'),
    "a signal": inbox.parse,
    "the name of a signal": lambda document: inbox.parse(f'{{"heard":{document}}}'),
    "an item of an outbox": parse_item,
    "a call of the overview": OverviewCall.parse,
    "metadata of a publication": parse_metadata,
    "a token": in_token,
    "an announcement": lambda document: announced_file("v03.a", f'{{"relPath":{document}}}'),
    "a poll": lambda document: ProxyPoll.parse(f'{{"Sid":{document}}}'.encode()),
    "an envelope of SNS": envelope_attributes,
    "an event of S3": lambda document: objects_of(f'{{"Records":{document}}}', sns=False),
}


@pytest.mark.parametrize("name", READERS)
def test_json_of_any_depth_is_read_or_refused(name: str) -> None:
    for document in documents():
        with suppress(RejectedError):
            READERS[name](document)


def documents() -> Iterator[str]:
    limit = sys.getrecursionlimit()
    for depth in (*range(limit - 130, limit - 30), 30_000):
        yield "[" * depth + "1" + "]" * depth
    yield '{"a":' * (limit - 90) + "1" + "}" * (limit - 90)
    yield "[" * 30_000
