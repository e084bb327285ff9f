"""Simulated DynamoDB: conditional writes, transactions, partial batches, stale reads and indexes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.simulation import expressions
from tests.simulation.expressions import ABSENT, Item
from tests.simulation.kernel import Kernel
from tests.simulation.services import Answer, Refusal, Request
from tests.simulation.table import STALE_INDEX_SECONDS, STALE_SECONDS, Index, Table

TOKEN_SECONDS = 600
# A page ends after 1 MB; here, it may end after this number of items, which have fewer bytes.
ITEMS_OF_A_PAGE = 20
MOST_KEYS, MOST_WRITES, MOST_TRANSACTED = 100, 25, 100
TTL = "expires_at"
Values = Mapping[str, Any]


class SimulatedDynamoDb:
    """The tables of one account and region; values are plain, with numbers as `Decimal`."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.tables: dict[str, Table] = {}
        self._tokens: dict[str, float] = {}

    def __call__(self, operation: str, request: Request) -> Answer:
        method = getattr(self, f"_{operation}", None)
        if method is None:
            raise NotImplementedError(f"DynamoDB {operation}")
        try:
            answer: Answer = method(request)
        except expressions.InvalidExpression as error:
            raise Refusal("ValidationException", str(error)) from error
        return answer

    def expire(self) -> None:
        """Delete the items whose time to live has ended."""
        for table in self.tables.values():
            for item in table.everything(None):
                if TTL in item and item[TTL] < self.kernel.now:
                    table.put(table.key(item), None, now=self.kernel.now)

    # Reads.

    def _moment(self, request: Request, *, oldest: float = STALE_SECONDS) -> float | None:
        if request.get("ConsistentRead") or not self.kernel.is_faulty("a read is stale", self.kernel.rates.stale):
            return None
        return self.kernel.now - self.kernel.between(0, oldest)

    def _GetItem(self, request: Request) -> Answer:  # noqa: N802 - the names are those of the operations
        table = self.tables[request["TableName"]]
        item = self._read(table, table.key(request["Key"]), self._moment(request))
        if item is None:
            return {}
        text = request.get("ProjectionExpression")
        return {"Item": expressions.projected(item, text, _names(request)) if text else item}

    def _read(self, table: Table, key: tuple[Any, Any], moment: float | None) -> Item | None:
        if moment is not None:
            before = table.before(moment)
            if key in before:
                return before[key]
        return table.get(key)

    def _BatchGetItem(self, request: Request) -> Answer:  # noqa: N802
        if sum(len(asked["Keys"]) for asked in request["RequestItems"].values()) > MOST_KEYS:
            raise Refusal("ValidationException", "Too many items requested for the BatchGetItem call")
        responses, left = {}, {}
        for name, asked in request["RequestItems"].items():
            table, moment = self.tables[name], self._moment(asked)
            keys = self._processed(asked["Keys"])
            found = [self._read(table, table.key(key), moment) for key in keys]
            text, names = asked.get("ProjectionExpression"), _names(asked)
            items = [item for item in found if item is not None]
            responses[name] = [expressions.projected(one, text, names) for one in items] if text else items
            if len(keys) < len(asked["Keys"]):
                left[name] = {**asked, "Keys": asked["Keys"][len(keys) :]}
        return {"Responses": responses, "UnprocessedKeys": left}

    def _processed(self, parts: Sequence[Any]) -> Sequence[Any]:
        if parts and self.kernel.is_faulty("parts of a batch are left", self.kernel.rates.unprocessed):
            return parts[: self.kernel.number(len(parts))]
        return parts

    def _Query(self, request: Request) -> Answer:  # noqa: N802
        table = self.tables[request["TableName"]]
        names, values = _names(request), _values(request)
        holds = expressions.condition(request["KeyConditionExpression"])
        if "IndexName" in request:
            index = table.indexes[request["IndexName"]]
            items = self._of_index(table, index, self._moment(request, oldest=STALE_INDEX_SECONDS))
        else:
            partition = partition_of(request, table.partition, values)
            low = _lowest_of(request, table.sort, values) if table.sort else None
            items = table.in_partition(partition, self._moment(request), low)
        found = [item for item in items if holds(item, names, values)]
        if not request.get("ScanIndexForward", True):
            found.reverse()
        return self._page(table, found, request)

    def _of_index(self, table: Table, index: Index, moment: float | None) -> list[Item]:
        items = [item for item in table.everything(moment) if index.partition in item and index.sort in item]
        kept = {
            *(index.listed or ()),
            index.partition,
            index.sort,
            table.partition,
            *([table.sort] if table.sort else []),
        }
        if index.listed is not None:
            items = [{name: value for name, value in item.items() if name in kept} for item in items]
        return sorted(items, key=lambda item: (item[index.sort], str(table.key(item))))

    def _Scan(self, request: Request) -> Answer:  # noqa: N802
        table = self.tables[request["TableName"]]
        if "IndexName" in request:
            moment = self._moment(request, oldest=STALE_INDEX_SECONDS)
            return self._page(table, self._of_index(table, table.indexes[request["IndexName"]], moment), request)
        return self._page(table, table.everything(self._moment(request)), request)

    def _page(self, table: Table, found: list[Item], request: Request) -> Answer:
        """Return a page from `ExclusiveStartKey` on: of `Limit` items, or fewer where a page would be too large."""
        names, values = _names(request), _values(request)
        start = request.get("ExclusiveStartKey")
        if start:
            key = table.key(start)
            places = [place for place, item in enumerate(found) if table.key(item) == key]
            found = found[places[0] + 1 :] if places else self._beyond(table, found, key, request)
        most = request.get("Limit", len(found) + 1)
        is_long = len(found) > ITEMS_OF_A_PAGE and "Limit" not in request
        if is_long and self.kernel.is_faulty("a page is short", self.kernel.rates.short_page):
            most = ITEMS_OF_A_PAGE
        page, answer = found[:most], {}
        if len(found) >= most and page:
            last = page[-1]
            index = table.indexes.get(request.get("IndexName", ""))
            key_names = [table.partition, table.sort, *([index.partition, index.sort] if index else [])]
            answer["LastEvaluatedKey"] = {name: last[name] for name in key_names if name}
        if request.get("FilterExpression"):
            holds = expressions.condition(request["FilterExpression"])
            page = [item for item in page if holds(item, names, values)]
        if request.get("ProjectionExpression"):
            page = [expressions.projected(item, request["ProjectionExpression"], names) for item in page]
        if request.get("Select") == "COUNT":
            return {"Count": len(page), **answer}
        return {"Items": page, "Count": len(page), **answer}

    def _beyond(self, table: Table, found: list[Item], key: tuple[Any, Any], request: Request) -> list[Item]:
        """Return the items after a start whose own item is gone."""
        if not request.get("ScanIndexForward", True):
            return [item for item in found if table.key(item) < key]
        return [item for item in found if table.key(item) > key]

    # Writes.

    def _PutItem(self, request: Request) -> Answer:  # noqa: N802
        item = request["Item"]
        return self._write(request, item, lambda _old: item)

    def _DeleteItem(self, request: Request) -> Answer:  # noqa: N802
        return self._write(request, request["Key"], lambda _old: None)

    def _UpdateItem(self, request: Request) -> Answer:  # noqa: N802
        key = request["Key"]
        names, values = _names(request), _values(request)
        return self._write(request, key, lambda old: _updated(old, key, request.get("UpdateExpression"), names, values))

    def _write(self, request: Request, key_item: Item, change: Any) -> Answer:
        table = self.tables[request["TableName"]]
        if self.kernel.is_faulty("a transaction is in the way", self.kernel.rates.conflict):
            raise Refusal("TransactionConflictException", "Transaction is ongoing for the item")
        key = table.key(key_item)
        old = table.get(key)
        self._check(request, old)
        new = change(old)
        table.put(key, new, now=self.kernel.now)
        return _returned(request.get("ReturnValues"), old, new)

    def _check(self, request: Request, old: Item | None) -> None:
        text = request.get("ConditionExpression")
        if not text:
            return
        if not expressions.condition(text)(old or {}, _names(request), _values(request)):
            details = {"Item": old} if old and request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" else {}
            raise Refusal("ConditionalCheckFailedException", "The conditional request failed", details=details)

    def _BatchWriteItem(self, request: Request) -> Answer:  # noqa: N802
        left = {}
        for name, writes in request["RequestItems"].items():
            if len(writes) > MOST_WRITES:
                raise Refusal("ValidationException", "Too many items requested for the BatchWriteItem call")
            table, done = self.tables[name], self._processed(writes)
            keys = [self._batch_write(table, write) for write in done]
            if len(set(keys)) < len(keys):
                raise Refusal("ValidationException", "Provided list of item keys contains duplicates")
            if len(done) < len(writes):
                left[name] = writes[len(done) :]
        return {"UnprocessedItems": left}

    def _batch_write(self, table: Table, write: Mapping[str, Any]) -> tuple[Any, Any]:
        if "PutRequest" in write:
            item = write["PutRequest"]["Item"]
            table.put(table.key(item), item, now=self.kernel.now)
            return table.key(item)
        key = table.key(write["DeleteRequest"]["Key"])
        table.put(key, None, now=self.kernel.now)
        return key

    def _TransactWriteItems(self, request: Request) -> Answer:  # noqa: N802
        token, now = request.get("ClientRequestToken"), self.kernel.now
        if token and now - self._tokens.get(token, float("-inf")) < TOKEN_SECONDS:
            return {}
        writes = [next(iter(one.items())) for one in request["TransactItems"]]
        if len(writes) > MOST_TRANSACTED:
            raise Refusal("ValidationException", "Member must have length less than or equal to 100")
        if self.kernel.is_faulty("a transaction is in the way", self.kernel.rates.conflict):
            code = "TransactionConflict" if self.kernel.random() < 0.7 else "ThrottlingError"
            raise _cancelled([code] + ["None"] * (len(writes) - 1))
        self._transact([self._planned(kind, write) for kind, write in writes])
        if token:
            self._tokens[token] = now
        return {}

    def _transact(self, planned: "Sequence[_Planned]") -> None:
        if any(one.refusal for one in planned):
            details = [one.refusal.details if one.refusal else {} for one in planned]
            raise _cancelled([one.code for one in planned], details)
        if len({(one.table.name, one.key) for one in planned}) < len(planned):
            raise Refusal("ValidationException", "Transaction request cannot include multiple operations on one item")
        for one in planned:
            if one.kind != "ConditionCheck":
                one.table.put(one.key, _transacted(one.kind, one.write, one.old), now=self.kernel.now)

    def _planned(self, kind: str, write: Mapping[str, Any]) -> "_Planned":
        table = self.tables[write["TableName"]]
        key = table.key(write["Item"] if kind == "Put" else write["Key"])
        old = table.get(key)
        try:
            self._check(write, old)
        except Refusal as refusal:
            return _Planned(table, key, kind, write, old, refusal)
        return _Planned(table, key, kind, write, old)


@dataclass(frozen=True)
class _Planned:
    """A write of a transaction, and the failure of its condition."""

    table: Table
    key: tuple[Any, Any]
    kind: str
    write: Mapping[str, Any]
    old: Item | None
    refusal: Refusal | None = None

    @property
    def code(self) -> str:
        return "ConditionalCheckFailed" if self.refusal else "None"


def _transacted(kind: str, write: Mapping[str, Any], old: Item | None) -> Item | None:
    if kind == "Put":
        found: Item = write["Item"]
        return found
    if kind == "Delete":
        return None
    return _updated(old, write["Key"], write["UpdateExpression"], _names(write), _values(write))


def _updated(old: Item | None, key: Item, text: str | None, names: Mapping[str, str], values: Values) -> Item:
    before = old if old is not None else key
    new: Item = dict(before)
    for change in expressions.update(text) if text else ():
        change(before, new, names, values)
    return new


def _returned(wanted: str | None, old: Item | None, new: Item | None) -> Answer:
    if wanted == "ALL_OLD":
        return {"Attributes": old} if old else {}
    if wanted == "ALL_NEW":
        return {"Attributes": new}
    if wanted == "UPDATED_NEW":  # an attribute that is set to its old value is not among them here
        changed = {name: value for name, value in (new or {}).items() if (old or {}).get(name, ABSENT) != value}
        return {"Attributes": changed}
    if wanted in (None, "NONE"):
        return {}
    raise NotImplementedError(f"ReturnValues {wanted}")


def _names(request: Mapping[str, Any]) -> Mapping[str, str]:
    return request.get("ExpressionAttributeNames") or {}


def _values(request: Mapping[str, Any]) -> Values:
    return request.get("ExpressionAttributeValues") or {}


def _cancelled(codes: Sequence[str], details: Sequence[Any] = ()) -> Refusal:
    reasons = [{"Code": code, **(details[n] if n < len(details) else {})} for n, code in enumerate(codes)]
    message = f"Transaction cancelled, please refer cancellation reasons for specific reasons [{', '.join(codes)}]"
    return Refusal("TransactionCanceledException", message, details={"CancellationReasons": reasons})


_FROM = re.compile(r"(?:([#\w]+)\s*(?:>|>=|=|BETWEEN)|begins_with\s*\(\s*([#\w]+)\s*,)\s*(:\w+)")


def _lowest_of(request: Request, name: str, values: Values) -> Any:
    """Return the least sort key that the condition of a query admits, or None."""
    names = _names(request)
    for compared, begun, placeholder in _FROM.findall(request["KeyConditionExpression"]):
        if names.get(compared or begun, compared or begun) == name:
            return values[placeholder]
    return None


_EQUAL = re.compile(r"([#\w]+)\s*=\s*(:\w+)")


def partition_of(request: Request, name: str, values: Values) -> Any:
    """Return the value that the condition of a query demands of the partition key."""
    names = _names(request)
    for attribute, placeholder in _EQUAL.findall(request["KeyConditionExpression"]):
        if names.get(attribute, attribute) == name:
            return values[placeholder]
    raise Refusal("ValidationException", f"Query condition missed key schema element: {name}")
