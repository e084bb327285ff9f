"""Connection snapshots in DynamoDB, read in one call: three items of `Live`, the user and, once a second, the realm.

A reply costs two writes of the outbox item. A live event costs none.
"""

import json
import zlib
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from signalbox.aws.exchange.items import head_key, user_key, user_of
from signalbox.aws.live.account_items import grants_of, rights_of_token
from signalbox.aws.live.items import grants_key, outbox_key, session_key
from signalbox.aws.live.realms import RealmSettings, realm_key
from signalbox.aws.live.sessions import stored_of
from signalbox.aws.shared.backoff import BACKOFF
from signalbox.aws.shared.dynamodb import Item, items_of_tables, milliseconds, moment
from signalbox.backoff import Backoff
from signalbox.exchange.model.records import LiveSettings, User
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.admin.grants import Rights
from signalbox.live.arvados.row_state import NO_ROWS, RowState
from signalbox.live.outbox.decisions import OutboxState, SequenceNumbers, Watermarks
from signalbox.live.outbox.items import ItemId
from signalbox.live.outbox.totals import Totals
from signalbox.live.outbox.writer import ConnectionSnapshot
from signalbox.live.session.state import ConnectionId, Session
from signalbox.live.wamp.messages import SubscriptionId
from signalbox.sarracenia.rights.names import ExchangeName, UserName

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

KEPT_FOR = timedelta(hours=2, minutes=15)  # longer than API Gateway keeps a connection
NO_RIGHTS = Rights(frozenset(), ())

_Owner = tuple[ExchangeName, UserName]


@dataclass(frozen=True, slots=True)
class DynamoConnectionSnapshots:
    """Implementation of `ConnectionSnapshots`."""

    live: "Table"
    exchanges: "Table"
    realms: RealmSettings = field(default_factory=RealmSettings)
    backoff: Backoff = BACKOFF

    def read(self, connection: ConnectionId, *, owner: _Owner | None) -> ConnectionSnapshot:
        """Read a connection's snapshot. If the caller knows the session's realm and user, `owner` saves a read."""
        read_at = self.realms.now()
        known = None if owner is None else self.realms.known(owner[0])
        found = self._found(connection, owner, is_realm_known=known is not None)
        session = stored_of(found["session"]).session if "session" in found else None
        session_owner = _owner(session)
        if session_owner is not None and session_owner != owner:
            return self.read(connection, owner=session_owner)
        return ConnectionSnapshot(
            session=session,
            outbox=outbox_of(found["outbox"]) if "outbox" in found else OutboxState(),
            rights=NO_RIGHTS if session is None or session_owner is None else _rights(session_owner[0], session, found),
            live=known or self._live(owner, found, read_at),
        )

    def save(self, connection: ConnectionId, outbox: OutboxState) -> None:
        """Save the state of a connection's outbox."""
        expires = {"expires_at": round((datetime.now(UTC) + KEPT_FOR).timestamp())}
        self.live.put_item(Item=outbox_key(connection) | outbox_item(outbox) | expires)

    def newest(self, realm: ExchangeName, topic: RoutingKey) -> int:
        """Return the sequence number of a topic's newest event, or 0."""
        keys = {self.exchanges.name: [head_key(realm, topic)]}
        found = items_of_tables(self.live.meta.client, keys, backoff=self.backoff)
        return max((int(item.get("sequence", 0)) for item in found[self.exchanges.name]), default=0)

    def _live(self, owner: _Owner | None, found: dict[str, Item], read_at: datetime) -> LiveSettings | None:
        return None if owner is None else self.realms.read(owner[0], found.values(), read_at=read_at)

    def _found(self, connection: ConnectionId, owner: _Owner | None, *, is_realm_known: bool) -> dict[str, Item]:
        keys: dict[str, list[Item]] = {self.live.name: [session_key(connection), outbox_key(connection)]}
        if owner is not None:
            realm, user = owner
            keys[self.live.name].append(grants_key(realm, user))
            keys[self.exchanges.name] = [user_key(user), *([] if is_realm_known else [realm_key(realm)])]
        found = items_of_tables(self.live.meta.client, keys, backoff=self.backoff)
        return {item["sk"]: item for items in found.values() for item in items}


def outbox_item(outbox: OutboxState) -> Item:
    """Serialize an outbox state; it is compressed, since it may have a watermark for each of thousands of topics."""
    document = {
        "subscribed": sorted(outbox.subscribed),
        "begun": outbox.unconfirmed_reply,
        "done": list(outbox.done),
        "awaited": {str(one): dict(numbers) for one, numbers in outbox.pending_backfills.items()},
        "caught_up_at": outbox.caught_up_at and milliseconds(outbox.caught_up_at),
        "progress": outbox.progress,
        "totals": _totals_document(outbox.totals),
        "marks": {str(one): [milliseconds(marks.at), dict(marks.numbers)] for one, marks in outbox.watermarks.items()},
        **({} if outbox.rows == NO_ROWS else {"rows": _rows_document(outbox.rows)}),
    }
    return {"document": zlib.compress(json.dumps(document, separators=(",", ":")).encode())}


def outbox_of(item: Item) -> OutboxState:
    """Parse an outbox state."""
    document = json.loads(zlib.decompress(bytes(item["document"])))
    begun, caught_up_at, progress = document["begun"], document["caught_up_at"], document["progress"]
    return OutboxState(
        subscribed=frozenset(map(SubscriptionId, document["subscribed"])),
        unconfirmed_reply=None if begun is None else ItemId(begun),
        done=tuple(map(ItemId, document["done"])),
        pending_backfills={SubscriptionId(int(one)): _numbers(numbers) for one, numbers in document["awaited"].items()},
        watermarks={
            SubscriptionId(int(one)): Watermarks(moment(at), _numbers(numbers))
            for one, (at, numbers) in document["marks"].items()
        },
        caught_up_at=None if caught_up_at is None else moment(caught_up_at),
        progress=None if progress is None else (ItemId(progress[0]), progress[1]),
        totals=_totals(document["totals"]),
        rows=_rows(document["rows"]) if "rows" in document else NO_ROWS,
    )


def _rows_document(rows: RowState) -> dict[str, object]:
    posted_at = rows.posted_at and milliseconds(rows.posted_at)
    return {"number": rows.number, "posted": rows.posted, "posted_at": posted_at, "deferred": rows.deferred}


def _rows(document: dict[str, Any]) -> RowState:
    posted, deferred = ((tuple(map(tuple, document[name]))) for name in ("posted", "deferred"))
    posted_at = None if document["posted_at"] is None else moment(document["posted_at"])
    return RowState(document["number"], posted, posted_at, deferred)


def _totals_document(totals: Totals) -> dict[str, object]:
    noted_at = totals.noted_at and milliseconds(totals.noted_at)
    return {**{one.name: getattr(totals, one.name) for one in fields(totals)}, "noted_at": noted_at}


def _totals(document: dict[str, Any]) -> Totals:
    noted_at = None if document["noted_at"] is None else moment(document["noted_at"])
    return Totals(**{**document, "lags": tuple(document["lags"]), "noted_at": noted_at})


def _numbers(document: dict[str, int]) -> SequenceNumbers:
    return {RoutingKey(topic): number for topic, number in document.items()}


def _owner(session: Session | None) -> _Owner | None:
    if session is None or session.realm is None or session.identity is None:
        return None
    return session.realm, UserName(session.identity.authid)


def _rights(realm: ExchangeName, session: Session, found: dict[str, Item]) -> Rights:
    if session.token is not None:
        # A token's user whose name became that of a user of the stage has no rights any more.
        return NO_RIGHTS if "user" in found else rights_of_token(realm, session.token, found.get("grants"))
    if "user" not in found:
        return NO_RIGHTS
    user: User = user_of(found["user"])
    return Rights.in_realm(
        realm, user=user.name, role=user.role, ownership=user.ownership, grants=grants_of(found.get("grants"))
    )
