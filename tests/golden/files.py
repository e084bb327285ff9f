"""Golden files: the forms of stored items and messages, which are version 1, as JSON.

They hold what a deployed stage has stored or has in flight when a new version is deployed over it.

A golden file is changed by hand, on purpose, and together with a migration: code that reads the old form and the new
one until no item or message of the old form can exist. A new kind of item or message gets an entry of its own.
"""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3

from signalbox.control.protocol import command_body

Json = Any
AT = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)
FOLDER = Path(__file__).parent
ZLIB = "zlib"  # the name of a compressed text in golden items; DynamoDB has its bytes


class FixedDatetime(datetime):
    """A `datetime` whose `now` is always the same."""

    @classmethod
    def now(cls, tz: object = None) -> datetime:
        del tz
        return AT


def golden(capability: str, kind: str) -> Json:
    return json.loads((FOLDER / capability / f"{kind}.json").read_text())


def rewritten(body: str) -> str:
    """Return the message of a command, written anew with the same id and fields."""
    fields = json.loads(body)
    del fields["reply"]
    return command_body(fields.pop("command"), request_id=fields.pop("id"), fields=fields)


def stored_items(table) -> Sequence[Json]:
    """Return all items of a table in DynamoDB's JSON, by key; compressed texts are shown as texts."""
    found = boto3.client("dynamodb").scan(TableName=table.name)["Items"]
    keys = [key["AttributeName"] for key in table.key_schema]
    return [
        {name: _shown(item[name]) for name in sorted(item)}
        for item in sorted(found, key=lambda item: [item[key]["S"] for key in keys])
    ]


def store(table, items: Sequence[Json], *, client: Any = None) -> None:
    """Put golden items into a table; `client` is DynamoDB's, of this process's credentials by default."""
    client = client or boto3.client("dynamodb")
    for item in items:
        client.put_item(TableName=table.name, Item={name: _value(value) for name, value in item.items()})


class _Exceptions:
    class QueueDoesNotExist(Exception):
        pass


class RecordingSqs:
    """The calls of SQS that send; `sent` has their arguments without the queue, and bytes as base64 text."""

    exceptions = _Exceptions

    def __init__(self) -> None:
        self.sent: list[Json] = []

    def send_message(self, **message: Json) -> Mapping[str, object]:
        self._record(message)
        return {"MessageId": "sent"}

    def send_message_batch(self, **call: Json) -> Mapping[str, object]:
        for entry in call["Entries"]:
            self._record(entry)
        return {"Successful": [{"Id": entry["Id"], "MessageId": "sent"} for entry in call["Entries"]]}

    def _record(self, message: Mapping[str, Json]) -> None:
        self.sent.append(_plain({name: message[name] for name in message if name not in ("QueueUrl", "Id")}))


def _plain(message: Json) -> Json:
    return json.loads(json.dumps(message, default=lambda value: base64.b64encode(value).decode()))


def _shown(value: Json) -> Json:
    if "B" not in value:
        return value
    try:
        return {ZLIB: zlib.decompress(value["B"]).decode()}
    except zlib.error:
        return {"B": base64.b64encode(value["B"]).decode()}


def _value(value: Json) -> Json:
    if ZLIB in value:
        return {"B": zlib.compress(value[ZLIB].encode())}
    return {"B": base64.b64decode(value["B"])} if "B" in value else value
