"""Connection snapshots in DynamoDB: those of a whole batch of items are read in one call.

A batch of events costs the read of its connection's outbox item, which has a copy of the session as of the last reply;
the items that decide about rights are read once a minute, and after a change. Any other batch costs the read of the
session, too. The replies of a batch cost two writes of the outbox item. A live event costs none. The numbers of many
topics or rows are in an item of their own, which replies do not write, and which costs each batch a second call.
"""

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from signalbox.aws.exchange.items import head_key, rights_version_key, rights_version_of, user_key
from signalbox.aws.live.account_items import credentials_in, rights_in
from signalbox.aws.live.cached_rights import Address, CachedRights
from signalbox.aws.live.group_grants import CachedGroupGrants
from signalbox.aws.live.items import (
    VERSION,
    grants_key,
    group_grants_version_key,
    marks_key,
    outbox_key,
    principal_key,
    secret_key,
    session_key,
)
from signalbox.aws.live.realms import RealmSettings, realm_key, settings_in
from signalbox.aws.live.recent import Moment
from signalbox.aws.live.sessions import MAXIMUM_RECORD_BYTES, packed, stored_of, unpacked
from signalbox.aws.shared.dynamodb import DynamoTable, milliseconds, moment, ttl
from signalbox.aws.shared.expressions import Item, Put
from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.forms import Form, Forms
from signalbox.live.log.read_limits import PastTooLarge
from signalbox.live.model.state import ConnectionId, Session
from signalbox.live.outbox.decisions import OutboxState, Watermarks
from signalbox.live.outbox.snapshots import ConnectionSnapshot, Owner, SnapshotRequest, owner_of
from signalbox.live.rights.grants import NO_RIGHTS, Rights
from signalbox.live.session.records import session_document, session_of
from signalbox.live.wamp.messages import SubscriptionId
from signalbox.sarracenia.rights.names import ExchangeName

KEPT_FOR = timedelta(hours=2, minutes=15)  # longer than API Gateway keeps a connection
# What the copy of a session leaves out concerns the function `session` only.
NOT_COPIED: dict[str, object] = {"frames": [], "pending": {}, "challenge": ""}

_ABSENT: Item = {}
NEW = OutboxState()
MANY, HAS_MARKS = 100, "marked"  # one or two KB


@dataclass(frozen=True, slots=True)
class DynamoConnectionSnapshots:
    """Implementation of `ConnectionSnapshots`; `access` has the items that decide about rights, as they were read."""

    live: DynamoTable
    exchanges: DynamoTable
    realms: RealmSettings = field(default_factory=RealmSettings)
    access: CachedRights = field(default_factory=CachedRights)
    group_grants: CachedGroupGrants = field(default_factory=CachedGroupGrants)

    def read(self, connection: ConnectionId, *, owner: Owner | None) -> ConnectionSnapshot:
        """Read a connection's snapshot. If the caller knows the session's realm and user, `owner` saves a read."""
        read_at, version = self.realms.now(), self.access.version
        known = None if owner is None else self.realms.known(owner[0])
        wanted = [self._session(connection), self._outbox(connection), *self._access(owner)]
        if owner is not None and known is not None:
            wanted.remove(self._realm(owner[0]))
        items = self._items(wanted)
        self._keep(items, self._access(owner), read_at=read_at, version=version)
        items |= self._marks([connection], items)
        record = items[self._session(connection)]
        session = stored_of(record).session if record else None
        session_owner = owner_of(session)
        if session_owner is not None and session_owner != owner:
            return self.read(connection, owner=session_owner)
        live = known or (
            None if owner is None else self.realms.read(owner[0], filter(None, items.values()), read_at=read_at)
        )
        return ConnectionSnapshot(
            session=session,
            outbox=self._state_of(connection, items),
            rights=self._rights(session, items, live),
            live=live,
        )

    def recent(self, requests: Sequence[SnapshotRequest]) -> Mapping[ConnectionId, ConnectionSnapshot]:
        """Read the snapshots of connections in one call, as far as their batches of items need them.

        After a change of rights, a second call reads the items of rights that were cached before the change.
        """
        read_at, version, known = self.access.now(), self.access.version, dict[Address, Item]()
        wanted = [address for request in requests for address in self._state(request)]
        access = dict.fromkeys(address for request in requests for address in self._access(request.owner))
        if access and self.access.is_version_due:
            wanted.append(self._rights_version)
        for address in access:
            item = self.access.get(address)
            if item is None:
                wanted.append(address)
            else:
                known[address] = item
        found = self._items(list(dict.fromkeys(wanted)))
        self._keep(found, access, read_at=read_at, version=version)
        if self._rights_version in found:
            self.access.put_version(rights_version_of(found[self._rights_version]), read_at=read_at)
        items = known | found | self._changed(known) | self._marks([one.connection for one in requests], found)
        realms = {request.owner[0] for request in requests if request.owner}
        settings = {realm: settings_in(filter(None, [items[self._realm(realm)]])) for realm in realms}
        return {request.connection: self._recent(request, items, settings) for request in requests}

    def _changed(self, known: Iterable[Address]) -> dict[Address, Item]:
        """Read those of the known items again that are out of use since the version of rights was read."""
        read_at, version = self.access.now(), self.access.version
        outdated = [address for address in known if self.access.get(address) is None]
        found = self._items(outdated) if outdated else {}
        self._keep(found, outdated, read_at=read_at, version=version)
        return found

    def save(
        self, connection: ConnectionId, outbox: OutboxState, *, session: Session | None, saved: OutboxState = NEW
    ) -> None:
        """Save the state of a connection's outbox, with a copy of its session. Raises `PastTooLarge`."""
        marks, known = _with_marks(NEW, outbox), _with_marks(NEW, saved)
        if not _are_many(marks):
            return self._put(outbox_key(connection) | outbox_item(outbox, session=session))
        if marks != known or not _are_many(known):
            self._put(marks_key(connection) | outbox_item(marks, session=None))
        rest = outbox_item(_with_marks(outbox, NEW), session=session)
        return self._put(outbox_key(connection) | rest | {HAS_MARKS: True})

    def _put(self, item: Item) -> None:
        if len(item["document"]) > MAXIMUM_RECORD_BYTES:
            raise PastTooLarge(
                "a connection may get past events of about 25,000 topics in five minutes: subscribe to fewer at a time"
            )
        self.live.write(Put(item | ttl(datetime.now(UTC) + KEPT_FOR)))

    def newest(self, realm: ExchangeName, topic: RoutingKey) -> int:
        """Return the sequence number of a topic's newest event, or 0."""
        address = _address(self.exchanges, head_key(realm, topic))
        return int(self._items([address])[address].get("sequence", 0))

    def _recent(
        self,
        request: SnapshotRequest,
        items: Mapping[Address, Item],
        settings: Mapping[ExchangeName, LiveSettings | None],
    ) -> ConnectionSnapshot:
        record, outbox = items.get(self._session(request.connection)), items[self._outbox(request.connection)]
        session = stored_of(record).session if record else copied_session_of(outbox)
        owner = owner_of(session)
        if request.owner is not None and request.owner != owner:  # or there is no copy of the session
            return self.read(request.connection, owner=owner or request.owner)
        return ConnectionSnapshot(
            session=session,
            outbox=self._state_of(request.connection, items),
            rights=self._rights(session, items, settings[request.owner[0]]) if request.owner else NO_RIGHTS,
            live=None,
            is_complete=False,
        )

    def _access(self, owner: Owner | None) -> list[Address]:
        """Return the items that decide about the rights of a user's sessions in a realm."""
        if owner is None:
            return []
        realm, user = owner
        of_live = (
            grants_key(realm, user),
            principal_key(realm, user),
            group_grants_version_key(realm),
            secret_key(user),
        )
        record = _address(self.exchanges, user_key(user))
        return [self._realm(realm), record, *(_address(self.live, key) for key in of_live)]

    def _rights(self, session: Session | None, items: Mapping[Address, Item], live: LiveSettings | None) -> Rights:
        """Return the rights of a session's user, if the present settings of the realm admit the session."""
        owner = owner_of(session)
        if session is None or owner is None or live is None:
            return NO_RIGHTS
        found = {item["sk"]: item for address in self._access(owner) if (item := items.get(address))}
        if not session.is_admitted(live, credentials_in(found)):
            return NO_RIGHTS
        realm, user = owner
        granted = self.group_grants.at_version(self.live, realm, found.get(VERSION))
        return rights_in(realm, user, found, granted, token=session.token, is_anonymous=session.is_anonymous)

    def _keep(
        self, items: Mapping[Address, Item], of: Iterable[Address], *, read_at: Moment, version: int | None
    ) -> None:
        """Keep those of the read items that decide about rights."""
        for address in of:
            if address in items:
                self.access.put(address, items[address], read_at=read_at, version=version)

    def _state(self, request: SnapshotRequest) -> list[Address]:
        """Return the items of a connection's state that a request needs."""
        outbox = self._outbox(request.connection)
        return [outbox] if request.has_only_events else [outbox, self._session(request.connection)]

    @property
    def _rights_version(self) -> Address:
        return _address(self.exchanges, rights_version_key())

    def _realm(self, realm: ExchangeName) -> Address:
        return _address(self.exchanges, realm_key(realm))

    def _session(self, connection: ConnectionId) -> Address:
        return _address(self.live, session_key(connection))

    def _outbox(self, connection: ConnectionId) -> Address:
        return _address(self.live, outbox_key(connection))

    def _marks(self, connections: Iterable[ConnectionId], items: Mapping[Address, Item]) -> dict[Address, Item]:
        """Read the items with the marks of connections that have one."""
        wanted = [_address(self.live, marks_key(one)) for one in connections if HAS_MARKS in items[self._outbox(one)]]
        return self._items(wanted) if wanted else {}

    def _state_of(self, connection: ConnectionId, items: Mapping[Address, Item]) -> OutboxState:
        outbox, marks = items[self._outbox(connection)], items.get(_address(self.live, marks_key(connection)))
        state = outbox_of(outbox) if outbox else NEW
        return _with_marks(state, outbox_of(marks)) if marks else state

    def _items(self, wanted: Sequence[Address]) -> dict[Address, Item]:
        """Read items in one strongly consistent call; an item that does not exist is empty."""
        keys: dict[str, list[Item]] = {}
        for table, partition, sort in wanted:
            keys.setdefault(table, []).append({"pk": partition, "sk": sort})
        found = self.live.get_across(keys)
        existing = {(table, item["pk"], item["sk"]): item for table, items in found.items() for item in items}
        return {address: existing.get(address, _ABSENT) for address in wanted}


def _address(table: DynamoTable, key: Item) -> Address:
    return table.name, key["pk"], key["sk"]


def _with_marks(outbox: OutboxState, other: OutboxState) -> OutboxState:
    """Return a state with the numbers of another one, of topics and of rows."""
    return replace(outbox, pending_backfills=other.pending_backfills, watermarks=other.watermarks, rows=other.rows)


def _are_many(marks: OutboxState) -> bool:
    of_topics: list[Sized] = [*marks.pending_backfills.values(), *(one.numbers for one in marks.watermarks.values())]
    return sum(map(len, [*of_topics, marks.rows.posted, marks.rows.deferred])) > MANY


def outbox_item(outbox: OutboxState, *, session: Session | None) -> Item:
    """Serialize an outbox state with a copy of the session.

    It is compressed, since it may have a watermark for each of thousands of topics.
    """
    document = OUTBOX.write(outbox)
    if session is not None:
        document["session"] = session_document(session) | NOT_COPIED
    return {"document": packed(document)}


def copied_session_of(item: Item) -> Session | None:
    """Parse the copy of the session in an outbox item; None if it has none."""
    copied = unpacked(item["document"]).get("session") if item else None
    return None if copied is None else session_of(copied)


def outbox_of(item: Item) -> OutboxState:
    """Parse an outbox state."""
    return OUTBOX.read(unpacked(item["document"]))


def _marks(row: Sequence[Any]) -> Watermarks:
    at, numbers = row
    return Watermarks(moment(at), numbers)


OUTBOX = Forms(
    {
        datetime: Form(milliseconds, moment),
        SubscriptionId: Form(int, int),  # JSON has it as a text where it is the name of a field
        Watermarks: Form(lambda marks: [milliseconds(marks.at), dict(marks.numbers)], _marks),
    }
).record(
    OutboxState,
    names={"unconfirmed_reply": "begun", "pending_backfills": "awaited", "watermarks": "marks"},
    sparse=["rows", "retained_to"],
    order=[
        "subscribed",
        "unconfirmed_reply",
        "done",
        "pending_backfills",
        "caught_up_at",
        "progress",
        "totals",
    ],
)
