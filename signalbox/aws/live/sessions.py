"""Sessions in the table `Live`: records of connections, joined sessions of realms, and the rate of new connections.

The cost of a frame, in request units: a read and a write for each KB of the compressed record, and a read of four items
for the user's access (`accounts.py`). A connection costs two writes when it is opened and one when it is closed, and
two more of each with a session.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Attr, Key

from signalbox.aws.exchange.items import FORMS
from signalbox.aws.live.items import (
    SESSION,
    opened_key,
    opened_partition,
    realm_partition,
    realm_session_key,
    second_key,
    session_key,
    user_session_key,
    user_sessions_partition,
)
from signalbox.aws.shared.backoff import BACKOFF
from signalbox.aws.shared.dynamodb import Item, every_item, every_key, succeeds, transacted
from signalbox.backoff import Backoff
from signalbox.live.model.state import KEPT_FOR, ConnectionId, Session
from signalbox.live.ports import Member, Stored
from signalbox.live.session.records import session_document, session_of
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import SessionId
from signalbox.sarracenia.rights.names import ExchangeName, UserName

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

# API Gateway ends a connection after two hours; the sweep runs every few minutes.
OVERDUE_AFTER = timedelta(hours=2, minutes=5)
LOOKED_FOR = timedelta(minutes=20)
MINUTE = timedelta(minutes=1)
GROUPS = 64  # of networks, in the item of a second


@dataclass(frozen=True, slots=True)
class DynamoSessions:
    """`Sessions`: an item for each connection, and one in the partition of the minute of its opening."""

    table: "Table"
    backoff: Backoff = BACKOFF

    def open(self, session: Session) -> bool:
        """Store the record of a new connection; return False if there is one."""
        expires_at = _seconds(session.opened_at + OVERDUE_AFTER + LOOKED_FOR)
        item = opened_key(session.connection, session.opened_at) | {"expires_at": expires_at}
        name, record = self.table.name, _item(session, version=1)
        held = transacted(
            self.table,
            [
                {"Put": {"TableName": name, "Item": record, "ConditionExpression": "attribute_not_exists(pk)"}},
                {"Put": {"TableName": name, "Item": item}},
            ],
        )
        return all(held)

    def find(self, connection: ConnectionId) -> Stored | None:
        """Return a record, or None."""
        item = self.table.get_item(Key=session_key(connection), ConsistentRead=True).get("Item")
        return None if item is None else stored_of(item)

    def find_all(self, connections: Iterable[ConnectionId]) -> Sequence[Session]:
        """Return the existing sessions of connections."""
        keys = [session_key(one) for one in connections]
        return [stored_of(item).session for item in every_key(self.table, keys, backoff=self.backoff)]

    def save(self, session: Session, *, replacing: Stored) -> Stored | None:
        """Store a changed record under the next version; return None if the stored one is not `replacing` any more."""
        saved = Stored(session, replacing.version + 1)
        item, is_as_read = _item(session, version=saved.version), Attr("version").eq(replacing.version)
        return saved if succeeds(lambda: self.table.put_item(Item=item, ConditionExpression=is_as_read)) else None

    def close(self, session: Session) -> None:
        """Record that a session has ended, so that it is never overdue. Closing twice is harmless."""
        self.table.delete_item(Key=opened_key(session.connection, session.opened_at))

    def overdue(self, *, now: datetime) -> Iterator[ConnectionId]:
        """Return the connections without a recorded end that are older than API Gateway keeps connections."""
        for minutes in range(LOOKED_FOR // MINUTE):
            condition = Key("pk").eq(opened_partition(now - OVERDUE_AFTER - minutes * MINUTE))
            query = {"KeyConditionExpression": condition, "ConsistentRead": True}
            yield from (ConnectionId(item["sk"]) for item in every_item(self.table.query, query))


@dataclass(frozen=True, slots=True)
class DynamoRealmSessions:
    """`RealmSessions`: an item in the partition of the realm, and one in that of the user."""

    table: "Table"

    def enter(self, realm: ExchangeName, member: Member, *, expires_at: datetime) -> None:
        """Add a session, which may be deleted after `expires_at`. Adding twice is harmless."""
        document = MEMBER.write(member) | {"expires_at": _seconds(expires_at)}
        keys = _keys(realm, member.listener)
        transacted(self.table, [{"Put": {"TableName": self.table.name, "Item": key | document}} for key in keys])

    def leave(self, realm: ExchangeName, listener: Listener) -> None:
        """Remove a session. Removing twice is harmless."""
        keys = _keys(realm, listener)
        transacted(self.table, [{"Delete": {"TableName": self.table.name, "Key": key}} for key in keys])

    def find(self, realm: ExchangeName, session: SessionId) -> Member | None:
        """Return a session, or None."""
        item = self.table.get_item(Key=realm_session_key(realm, session), ConsistentRead=True).get("Item")
        return None if item is None else MEMBER.read(item)

    def every(self, realm: ExchangeName) -> Sequence[Member]:
        """Return all sessions of a realm, sorted by id."""
        condition = Key("pk").eq(realm_partition(realm)) & Key("sk").begins_with(SESSION)
        return [MEMBER.read(item) for item in self._items(condition)]

    def of_user(self, realm: ExchangeName, user: UserName) -> Sequence[ConnectionId]:
        """Return the connections of a user's sessions in a realm."""
        items = self._items(Key("pk").eq(user_sessions_partition(realm, user)))
        return [ConnectionId(item["connection"]) for item in items]

    def _items(self, condition: object) -> Iterator[Item]:
        return every_item(self.table.query, {"KeyConditionExpression": condition, "ConsistentRead": True})


@dataclass(frozen=True, slots=True)
class DynamoConnectionRate:
    """The rate of new connections: for each second a counter of all, and one for each group of networks."""

    table: "Table"

    def count(self, *, now: datetime, most: int, network: int | None, most_of_network: int) -> bool:
        """Count a connection unless the second of `now` has too many; return whether it was counted.

        A network is in another group every second, so that it is not refused for long with a stranger's.
        """
        key = second_key(now)
        counters = {"count": most}
        if network is not None:
            counters[f"network{zlib.crc32(f'{key} {network}'.encode()) % GROUPS}"] = most_of_network
        below = [Attr(name).not_exists() | Attr(name).lt(limit) for name, limit in counters.items()]
        names = {f"#c{number}": name for number, name in enumerate(counters)}
        return succeeds(
            lambda: self.table.update_item(
                Key=key,
                UpdateExpression=f"SET expires_at = :expires_at ADD {', '.join(f'{name} :one' for name in names)}",
                ConditionExpression=reduce(and_, below),
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={":expires_at": _seconds(now + MINUTE), ":one": 1},
            )
        )


MEMBER = FORMS.record(Member, flat=["listener"])


def stored_of(item: Item) -> Stored:
    """Return the session of an item with its version."""
    document = json.loads(zlib.decompress(bytes(item["document"])))
    return Stored(session_of(document), int(item["version"]))


def _item(session: Session, *, version: int) -> Item:
    text = json.dumps(session_document(session), separators=(",", ":"))
    return session_key(session.connection) | {
        "document": zlib.compress(text.encode(), level=1),
        "version": version,
        "expires_at": _seconds(session.opened_at + KEPT_FOR),
    }


def _keys(realm: ExchangeName, listener: Listener) -> tuple[Item, Item]:
    by_user = user_session_key(realm, UserName(listener.authid), listener.session)
    return realm_session_key(realm, listener.session), by_user


def _seconds(at: datetime) -> int:
    return round(at.timestamp())
