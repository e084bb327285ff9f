"""What a call reads and writes, and which calls commute; what an agent may still do is recorded in the runs.

A place is a tuple, such as a table with the keys of an item; a shorter one means all places below it. Two steps
commute if neither writes what the other reads or writes.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator
from functools import cache

from tests.simulation.dynamodb import partition_of
from tests.simulation.services import Request
from tests.simulation.table import Table
from tests.simulation.world import World

Place = tuple[str, ...]
Accesses = frozenset[tuple[Place, bool]]
"""Places, each with whether it is written."""
Node = tuple[str, int, float]
"""An agent with the number of its calls until now and the time: what others do at a later time follows anyway."""
NONE: Accesses = frozenset()
# Items that no rule of order depends on: counters, and the paces of polls, which the scopes do not follow.
UNSEEN, UNSEEN_SORTS = ("statistics#", "distinct#", "key#", "pace"), "minute#"
QUEUE_NAMES: Place = ("names of queues",)
READS = ("Get", "List", "Query", "Scan", "BatchGet")

OF_QUEUES: dict[str, Callable[[str], Iterable[tuple[Place, bool]]]] = {
    "ListQueues": lambda _: {(QUEUE_NAMES, False)},
    "ListDeadLetterSourceQueues": lambda _: {(("sqs",), False)},
    "GetQueueUrl": lambda name: {(("sqs", name, "queue"), False)},
    "ListQueueTags": lambda name: {(("sqs", name, "queue"), False)},
    "TagQueue": lambda name: {(("sqs", name, "queue"), True)},
    "CreateQueue": lambda name: {(("sqs", name), True), ((*QUEUE_NAMES, name), True)},
    "DeleteQueue": lambda name: {(("sqs", name), True), ((*QUEUE_NAMES, name), True)},
}
"""The places of operations on whole queues, by the queue's name."""


def is_unseen(partition: str = "", sort: str = "") -> bool:
    """Return whether an item is one that no rule of order depends on."""
    return partition.startswith(UNSEEN) or sort.startswith(UNSEEN_SORTS)


@cache
def conflict(some: Accesses, others: Accesses) -> bool:
    """Return whether two steps with these accesses do not commute."""
    return any(
        (is_written or also_written) and place[: len(other)] == other[: len(place)]
        for place, is_written in some
        for other, also_written in others
    )


def accesses(world: World, service: str, operation: str, request: Request) -> Accesses:
    """Return the places of a call."""
    if service == "firehose":
        return NONE
    if service == "dynamodb":
        found = _of_items(operation, request, world.dynamodb.tables)
        return frozenset(one for one in found if not is_unseen(*one[0][1:]))
    if service == "sqs":
        return frozenset(_of_queue(world, operation, request))
    named = request.get("ConnectionId") or request.get("Name", "").partition(":")[0]
    return frozenset({((service, named) if named else (service,), not operation.startswith(READS))})


def _of_items(operation: str, request: Request, tables: dict[str, Table]) -> Iterator[tuple[Place, bool]]:
    if operation in ("Query", "Scan"):
        name = request["TableName"]
        if operation == "Scan" or "IndexName" in request:
            yield (name,), False
        else:
            partition = partition_of(request, tables[name].partition, request["ExpressionAttributeValues"])
            yield (name, str(partition)), False
    elif operation == "TransactWriteItems":
        for one in request["TransactItems"]:
            ((kind, write),) = one.items()
            yield _item(tables, write["TableName"], write.get("Key") or write["Item"]), kind != "ConditionCheck"
    elif operation in ("BatchGetItem", "BatchWriteItem"):
        for name, asked in request["RequestItems"].items():
            for one in asked["Keys"] if operation == "BatchGetItem" else asked:
                write = next(iter(one.values())) if operation == "BatchWriteItem" else {}
                yield _item(tables, name, write.get("Key") or write.get("Item") or one), bool(write)
    else:
        item = request.get("Key") or request["Item"]
        yield _item(tables, request["TableName"], item), not operation.startswith(READS)


def _item(tables: dict[str, Table], name: str, item: Request) -> Place:
    partition, sort = tables[name].key(item)
    return name, str(partition), str(sort)


def _of_queue(world: World, operation: str, request: Request) -> Iterator[tuple[Place, bool]]:
    name = str(request.get("QueueUrl") or request.get("QueueName") or "").rpartition("/")[2]
    if operation.startswith("SendMessage"):
        for entry in request.get("Entries", (request,)):
            # Without a group, no order is kept between messages of several senders.
            yield ("sqs", name, "sent", entry.get("MessageGroupId", world.kernel.current.key)), True
            if "MessageGroupId" in entry:  # the queue numbers its messages
                yield ("sqs", name, "number"), True
                yield ("sqs", name, "id", entry.get("MessageDeduplicationId", "")), True
    elif operation.startswith(("DeleteMessage", "ChangeMessageVisibility")):
        for entry in request.get("Entries", (request,)):
            yield from of_receipt(world, name, entry["ReceiptHandle"], is_shown=entry.get("VisibilityTimeout") == 0)
    elif operation == "ReceiveMessage":
        yield from received(name)
    else:
        yield from OF_QUEUES.get(operation, lambda one: {(("sqs", one), not operation.startswith(READS))})(name)


def received(name: str) -> Accesses:
    """Return the places of a receive: what was sent, and what has become visible again."""
    return frozenset({(("sqs", name, "sent"), True), (("sqs", name, "visible"), True)})


def of_receipt(world: World, name: str, handle: str, *, is_shown: bool = False) -> Iterator[tuple[Place, bool]]:
    """Yield the places of a change of a received message.

    While the message is in flight, no receive sees it, but for one of a FIFO queue, whose group it blocks.
    """
    message_id = handle.partition(":")[0]
    yield ("sqs", name, "message", message_id), True
    queue = world.sqs.queues.get(name)
    message = queue.messages.get(message_id) if queue else None
    if is_shown or (message and (message.group or message.visible_at <= world.kernel.now)):
        yield ("sqs", name, "visible"), True


class Learned:
    """The steps of each agent as they were seen: accesses by position, and the positions that may follow.

    An exploration that records something new may have left out an order before, and is repeated.
    """

    def __init__(self) -> None:
        self.new = 0
        self._accesses: dict[Node, Accesses] = defaultdict(frozenset)
        self._followers: dict[Node, set[Node]] = defaultdict(set)

    def access(self, node: Node, found: Accesses) -> None:
        """Note the places of the step at a position."""
        if not found <= self._accesses[node]:
            self._accesses[node] |= found
            self.new += 1

    def follow(self, node: Node, other: Node) -> None:
        """Note that a position follows another."""
        if other not in self._followers[node]:
            self._followers[node].add(other)
            self.new += 1

    def meets(self, found: Accesses, node: Node, known: Container[str]) -> bool:
        """Return whether an agent, or one that it starts or wakes, may access a place now or later.

        `known` are the agents that are over, and those that are asked about by themselves.
        """
        reached, waiting = {node}, [node]
        while waiting:
            one = waiting.pop()
            if conflict(found, self._accesses.get(one, NONE)):
                return True
            for other in self._followers.get(one, ()):
                if other not in reached and (other[0] == node[0] or other[0] not in known):
                    reached.add(other)
                    waiting.append(other)
        return False
