"""Sessions in the table `Live`: records of connections, joined sessions of realms, and the rate of new connections.

The cost of a frame, in request units: a read and a write for each KB of the compressed record, and a read of four items
for the user's access (`accounts.py`). A connection costs two writes when it is opened and one when it is closed, and
two more of each with a session.
"""

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import reduce
from operator import and_

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
from signalbox.aws.shared.dynamodb import DynamoTable, ttl
from signalbox.aws.shared.expressions import IS_NEW, Delete, Expression, Item, Put, Update, attr
from signalbox.forms import Document
from signalbox.live.model.state import KEPT_FOR, ConnectionId, Killed, Session
from signalbox.live.ports import Member, RecordTooLarge, Stored
from signalbox.live.session.records import session_document, session_of
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import SessionId
from signalbox.sarracenia.rights.names import ExchangeName, UserName

# API Gateway ends a connection after two hours; the sweep runs every few minutes.
OVERDUE_AFTER = timedelta(hours=2, minutes=5)
LOOKED_FOR = timedelta(minutes=20)
MINUTE = timedelta(minutes=1)
MAXIMUM_RECORD_BYTES = 400_000  # an item of DynamoDB has at most 400 KB, 409,600 bytes, with its key
KILLED, KB = "killed", 1024
GROUPS = 64  # of networks, in the item of a second


@dataclass(frozen=True, slots=True)
class DynamoSessions:
    """`Sessions`: an item for each connection, and one in the partition of the minute of its opening."""

    table: DynamoTable

    def open(self, session: Session) -> bool:
        """Store the record of a new connection; return False if there is one."""
        opened = opened_key(session.connection, session.opened_at) | ttl(session.opened_at + OVERDUE_AFTER + LOOKED_FOR)
        return all(self.table.transact(Put(_item(session, version=1), IS_NEW), Put(opened)))

    def find(self, connection: ConnectionId) -> Stored | None:
        """Return a record, or None."""
        item = self.table.get(session_key(connection))
        return None if item is None else stored_of(item)

    def find_all(self, connections: Iterable[ConnectionId]) -> Sequence[Session]:
        """Return the existing sessions of connections."""
        keys = [session_key(one) for one in connections]
        return [stored_of(item).session for item in self.table.get_all(keys)]

    def save(self, session: Session, *, replacing: Stored) -> Stored | None:
        """Store a changed record under the next version; return None if the stored record is not `replacing` any more.

        A killed session is not `replacing` either. Raises `RecordTooLarge`.
        """
        saved, killed = replace(replacing, session=session, version=replacing.version + 1), replacing.killed
        item = _item(session, version=saved.version) | ({KILLED: [killed.reason, killed.message]} if killed else {})
        if len(item["document"]) > MAXIMUM_RECORD_BYTES:
            raise RecordTooLarge(f"the record of connection {session.connection!r} has no room for a change")
        is_as_read = attr(KILLED).exists() if killed else attr(KILLED).not_exists()
        put = Put(item, attr("version").eq(replacing.version) & is_as_read)
        return saved if self.table.write(put) else None

    def kill(self, connection: ConnectionId, killed: Killed) -> None:
        """Have a session end with its next message, whichever that is. Killing twice is harmless."""
        mark: Item = {KILLED: [killed.reason, killed.message]}
        self.table.write(Update(session_key(connection), sets=mark, condition=attr("version").exists()))

    def close(self, session: Session) -> None:
        """Record that a session has ended, so that it is never overdue. Closing twice is harmless."""
        self.table.write(Delete(opened_key(session.connection, session.opened_at)))

    def overdue(self, *, now: datetime) -> Iterator[ConnectionId]:
        """Return the connections without a recorded end that are older than API Gateway keeps connections."""
        for minutes in range(LOOKED_FOR // MINUTE):
            of_minute = attr("pk").eq(opened_partition(now - OVERDUE_AFTER - minutes * MINUTE))
            yield from (ConnectionId(item["sk"]) for item in self.table.query(of_minute))


@dataclass(frozen=True, slots=True)
class DynamoRealmSessions:
    """`RealmSessions`: an item in the partition of the realm, and one in that of the user."""

    table: DynamoTable

    def enter(self, realm: ExchangeName, member: Member, *, expires_at: datetime) -> None:
        """Add a session, which may be deleted after `expires_at`. Adding twice is harmless."""
        document = MEMBER.write(member) | ttl(expires_at)
        self.table.transact(*(Put(key | document) for key in _keys(realm, member.listener)))

    def leave(self, realm: ExchangeName, listener: Listener) -> None:
        """Remove a session. Removing twice is harmless."""
        self.table.transact(*map(Delete, _keys(realm, listener)))

    def find(self, realm: ExchangeName, session: SessionId) -> Member | None:
        """Return a session, or None."""
        item = self.table.get(realm_session_key(realm, session))
        return None if item is None else MEMBER.read(item)

    def every(self, realm: ExchangeName) -> Sequence[Member]:
        """Return all sessions of a realm, sorted by id."""
        sessions = attr("pk").eq(realm_partition(realm)) & attr("sk").begins_with(SESSION)
        return list(map(MEMBER.read, self.table.query(sessions)))

    def of_user(self, realm: ExchangeName, user: UserName) -> Sequence[ConnectionId]:
        """Return the connections of a user's sessions in a realm."""
        items = self.table.query(attr("pk").eq(user_sessions_partition(realm, user)))
        return [ConnectionId(item["connection"]) for item in items]


@dataclass(frozen=True, slots=True)
class DynamoConnectionRate:
    """The rate of new connections: for each second a counter of all, and one for each group of networks."""

    table: DynamoTable

    def count(self, *, now: datetime, most: int, network: int | None, most_of_network: int) -> bool:
        """Count a connection unless the second of `now` has too many; return whether it was counted.

        A network is in another group every second, so that it is not refused for long with a stranger's.
        """
        key = second_key(now)
        counters = {"count": most}
        if network is not None:
            counters[f"network{zlib.crc32(f'{key} {network}'.encode()) % GROUPS}"] = most_of_network
        below = reduce(and_, (_is_below(limit, attr(name)) for name, limit in counters.items()))
        return self.table.write(Update(key, sets=ttl(now + MINUTE), adds=dict.fromkeys(counters, 1), condition=below))


def _is_below(limit: int, counter: Expression) -> Expression:
    return counter.not_exists() | counter.lt(limit)


MEMBER = FORMS.record(Member, flat=["listener"])


def stored_of(item: Item) -> Stored:
    """Return the session of an item with its version, and its size without pending publications, which count alone."""
    killed = Killed(*item[KILLED]) if KILLED in item else None
    document = item["document"]
    session = session_of(unpacked(document))
    if session.pending and len(document) >= KB:
        document = packed(session_document(replace(session, pending={})), level=1)
    return Stored(session, int(item["version"]), killed, kilobytes=len(document) // KB)


def packed(document: Document, *, level: int = -1) -> bytes:
    """Compress a document; `level` is that of zlib."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode(errors="surrogatepass"), level=level)  # JSON may have a lone surrogate


def unpacked(data: bytes) -> Document:
    """Return the document of compressed data."""
    document: Document = json.loads(zlib.decompress(data))
    return document


def _item(session: Session, *, version: int) -> Item:
    return session_key(session.connection) | {
        "document": packed(session_document(session), level=1),
        "version": version,
        **ttl(session.opened_at + KEPT_FOR),
    }


def _keys(realm: ExchangeName, listener: Listener) -> tuple[Item, Item]:
    by_user = user_session_key(realm, UserName(listener.authid), listener.session)
    return realm_session_key(realm, listener.session), by_user
