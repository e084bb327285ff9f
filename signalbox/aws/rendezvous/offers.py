"""The table of rendezvous records: each transition of a rendezvous is one conditional write.

The condition expressions are equivalent to `is_claimable`, `is_answerable` and `TRANSITIONS` in
`signalbox.rendezvous.model.states`; one test suite runs against this adapter and the in-memory one.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from heapq import merge

from signalbox.aws.rendezvous.packing import packed, unpacked
from signalbox.aws.shared.dynamodb import DynamoTable, milliseconds, moment, ttl
from signalbox.aws.shared.expressions import IS_NEW, Expression, Item, Put, Update, attr
from signalbox.queues import Lease, QueueName, QueueUrl, queue_name
from signalbox.rendezvous.model.states import (
    BUSY_RECORDS,
    OPEN_STATES,
    ClientId,
    OfferPool,
    OfferState,
    RendezvousMethod,
    RendezvousRecord,
    offer_pool,
)
from signalbox.rendezvous.reporting import events
from signalbox.rendezvous.reporting.counters import UNKNOWN_COUNTRY
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.proxy import ProxyPoll

# The newest records of a pool that a poll reads, of about half a kilobyte each.
PAGE_SIZE = 50
# The newest records of a pool, among which the match of a session nearly always is.
SOUGHT_RECORDS = 8
# After the lease of the client's queue, so that a late copy of an offer is recognised.
KEPT_FOR = timedelta(hours=1)
# The broker queue delivers a message again after this time at the earliest, with another receipt handle.
RECEIVED_AGAIN = timedelta(seconds=3)
# The mark between the time and the client in a sort key; the times have 13 digits until the year 2286.
MARK = "#"
# A character that comes after the mark and every digit.
LAST = "~"
IS_OPEN = attr("state").is_in(sorted(OPEN_STATES))


@dataclass(frozen=True, slots=True)
class DynamoOffers:
    """`Offers` in the table `RendezvousRecord`: a partition for each pool, sorted by the time an offer was sent.

    `kept_for` is the time from an offer to the end of the lease of its client's queue.
    """

    table: DynamoTable
    kept_for: timedelta

    def find(self, draft: RendezvousRecord) -> RendezvousRecord | None:
        """Return the stored record with the key of `draft`, or None."""
        item = self.table.get(_key(draft))
        return parse_record(item) if item else None

    def open(self, record: RendezvousRecord) -> bool:
        """Store a new record and return True, or return False if there is one with its key."""
        expiry = ttl(record.created_at + self.kept_for + KEPT_FOR)
        return self.table.write(Put(_item(record) | expiry, IS_NEW))

    def recent(self, pool: OfferPool, *, since: datetime, until: datetime) -> list[RendezvousRecord]:
        """Return the newest records of a pool that were sent in a period, newest first."""
        sent = _sent(pool, since, until=until)
        pages = self.table.pages(sent, is_consistent=False, ScanIndexForward=False, Limit=PAGE_SIZE)
        return [parse_record(item) for item in next(pages)]

    def claim(
        self, record: RendezvousRecord, *, proxy: ProxyPoll, now: datetime, until: datetime, is_busy: bool
    ) -> RendezvousRecord | None:
        """Claim an offer for a proxy until `until`; return the record, or None if it is not `is_claimable`.

        A repeated claim returns the same record. `is_busy` is whether the pool has more than `BUSY_RECORDS`.
        """
        # A call whose response is lost is repeated: the second one finds the claim of the first.
        is_ours = attr("sid").eq(proxy.sid) & attr("available_at").eq(milliseconds(until))
        is_free = attr("available_at").lte(milliseconds(now)) | is_ours
        in_time = attr("deadline").gt(milliseconds(now)) & is_free
        sets: Item = {"state": OfferState.MATCHED, "sid": proxy.sid, "proxy_type": proxy.proxy_type}
        sets["available_at"] = milliseconds(until)
        item = self.table.written(Update(_key(record), sets=sets, adds={"matches": 1}, condition=IS_OPEN & in_time))
        if item and is_busy:
            self.table.write(Put(_match_key(proxy.sid) | {"offer": _key(record)} | ttl(record.deadline)))
        return parse_record(item) if item else None

    def matched_by(self, sid: str, *, since: datetime) -> RendezvousRecord | None:
        """Return the record, sent since a time, that is matched with a proxy session, or None."""
        return next((parse_record(item) for item in self._sought(sid, since) if item.get("sid") == sid), None)

    def _sought(self, sid: str, since: datetime) -> Iterator[Item]:
        """Yield the few records that may be matched with a session, likely ones first, as they are needed."""
        longer = []
        for pool in OfferPool:
            newest = next(self.table.pages(_sent(pool, since), ScanIndexForward=False, Limit=SOUGHT_RECORDS))
            yield from newest
            longer += [pool] if len(newest) == SOUGHT_RECORDS else []
        match = self.table.get(_match_key(sid)) if longer else None
        if match:
            yield self.table.get(match["offer"]) or {}
        # A claim without such an item was of a pool with few records: however many came since, it is among the oldest.
        for pool in longer:
            yield from next(self.table.pages(_sent(pool, since), Limit=BUSY_RECORDS))

    def answer(self, record: RendezvousRecord, *, sid: str, reply: str, now: datetime) -> RendezvousRecord | None:
        """Store the answer to an offer and return the record, or return None if it is not `is_answerable`."""
        is_mine = attr("state").eq(OfferState.MATCHED) & attr("sid").eq(sid)
        in_time = attr("deadline").gt(milliseconds(now))
        answered = replace(record, available_at=now)
        found = self._finish(answered, OfferState.ANSWERED, reply=reply, condition=is_mine & in_time)
        if found is None or now < found.created_at + RECEIVED_AGAIN:
            return found
        renewed = self.table.get(_receipt_key(found)) or {}
        return replace(found, receipt_handle=renewed.get("receipt_handle", found.receipt_handle))

    def close(self, record: RendezvousRecord, *, state: OfferState, reply: str) -> RendezvousRecord | None:
        """Move an open offer to a final state and return the record, or return None if it was already final."""
        return self._finish(record, state, reply=reply, condition=IS_OPEN)

    def _finish(
        self, record: RendezvousRecord, state: OfferState, *, reply: str, condition: Expression
    ) -> RendezvousRecord | None:
        # Polls read the record until its patience would end: it keeps only what a redelivery needs.
        removes = [attr("session_description"), attr("receipt_handle"), attr("relay_url")]
        final = {"state": state, "reply": packed(reply), "available_at": milliseconds(record.available_at)}
        item = self.table.written(
            Update(_key(record), sets=final, removes=removes, condition=condition), returned="ALL_OLD"
        )
        if item is None:
            return None
        del item["session_description"]
        return parse_record(item | final)

    def renew(self, record: RendezvousRecord, *, receipt_handle: str) -> None:
        """Store the newest receipt handle of an offer's message."""
        # Not in the record: the offers of a pool share the 1,000 write units a second of its partition key.
        self.table.write(Put(_receipt_key(record) | {"receipt_handle": receipt_handle} | ttl(record.deadline)))


@dataclass(frozen=True, slots=True)
class DynamoQueueLeases:
    """`QueueLeases` in the keys of the table `RendezvousRecord`: no write marks an offer's end.

    `queues_url` is the common start of the URLs of client queues, and `kept_for` the time from an offer to the end of
    the lease. It reads keys alone, so its function need not see addresses.
    """

    table: DynamoTable
    queues_url: str
    kept_for: timedelta

    def between(self, since: datetime, until: datetime) -> Iterator[Lease]:
        """Yield the leases that end in this period, both ends included, oldest first; pages are read as needed."""
        start, end = (f"{milliseconds(time - self.kept_for):013}" for time in (since, until))
        yield from self._leases(attr("sk").between(start + MARK, end + LAST))

    def needed(self, *, now: datetime) -> AbstractSet[QueueName]:
        """Return the queues whose lease has not ended."""
        begun = f"{milliseconds(now - self.kept_for):013}{LAST}"
        return {lease.queue_name for lease in self._leases(attr("sk").gt(begun))}

    def _leases(self, times: Expression) -> Iterator[Lease]:
        of_pools = (attr("pk").eq(pool) & times for pool in OfferPool)
        items = (self.table.query(condition, only=["sk"], is_consistent=False) for condition in of_pools)
        for sent, client_id in merge(*(map(_parse_key, found) for found in items)):
            if RendezvousMethod.SQS is _method(client_id):
                url = QueueUrl(f"{self.queues_url}{client_id}")
                yield Lease(queue_name(url), url, events.CAPABILITY, moment(sent) + self.kept_for)


def _key(record: RendezvousRecord) -> Item:
    sent = f"{milliseconds(record.created_at):013}"
    return {"pk": offer_pool(record.nat), "sk": f"{sent}{MARK}{record.client_id}"}


def _sent(pool: OfferPool, since: datetime, *, until: datetime | None = None) -> Expression:
    """Return the condition of a pool's records that were sent in a period."""
    end = f"{milliseconds(until):013}{LAST}" if until else LAST
    return attr("pk").eq(pool) & attr("sk").between(f"{milliseconds(since):013}", end)


def _match_key(sid: str) -> Item:
    return {"pk": f"match{MARK}{sid}", "sk": "match"}


def _receipt_key(record: RendezvousRecord) -> Item:
    key = _key(record)
    return {"pk": f"receipt{MARK}{key['sk']}", "sk": key["pk"]}


def _parse_key(item: Item) -> tuple[str, ClientId]:
    sent, _, client_id = item["sk"].partition(MARK)
    return sent, ClientId(client_id)


def _method(client_id: ClientId) -> RendezvousMethod:
    """Return the method of a client; only the ClientIDs of HTTP requests have a colon, which no queue name has."""
    method, colon, _ = client_id.partition(":")
    return RendezvousMethod(method) if colon else RendezvousMethod.SQS


def _item(record: RendezvousRecord) -> Item:
    item: Item = _key(record) | {
        "state": record.state,
        "available_at": milliseconds(record.available_at),
        "deadline": milliseconds(record.deadline),
        "nat": record.nat,
        "relay_url": record.relay_url,
        "country": record.country,
        "message_id": record.message_id,
        "receipt_handle": record.receipt_handle,
        "sid": record.sid,
        "proxy_type": record.proxy_type,
        "matches": record.matches,
        "reply": packed(record.reply) if record.reply else None,
    }
    if record.state in OPEN_STATES:
        item["session_description"] = packed(record.session_description)
    return {name: value for name, value in item.items() if value is not None}


def parse_record(item: Item) -> RendezvousRecord:
    """Return the record of an item."""
    sent, client_id = _parse_key(item)
    return RendezvousRecord(
        client_id=client_id,
        method=_method(client_id),
        state=OfferState(item["state"]),
        created_at=moment(sent),
        available_at=moment(item["available_at"]),
        deadline=moment(item["deadline"]),
        nat=Nat(item["nat"]),
        session_description=unpacked(item["session_description"]) if "session_description" in item else "",
        relay_url=item.get("relay_url", ""),
        country=item.get("country", UNKNOWN_COUNTRY),
        message_id=item.get("message_id"),
        receipt_handle=item.get("receipt_handle"),
        sid=item.get("sid"),
        proxy_type=item.get("proxy_type"),
        matches=int(item["matches"]),
        reply=unpacked(item["reply"]) if "reply" in item else None,
    )
