"""The tables of what order costs a live exchange, and its promises."""

import statistics
from collections.abc import Iterator, Sequence

from benchmarks.parts.live.order import EVENTS, ROUNDS, SUBSCRIBERS, TOPICS, Ordered
from benchmarks.parts.live.order_batches import (
    ASSUMED,
    AT_ONCE,
    CALLS_PER_GROUP,
    DYNAMODB,
    FIREHOSE,
    SQS,
    Batch,
    rates,
)
from benchmarks.shared.report import Table

NAMES = {DYNAMODB: "DynamoDB", SQS: "SQS", FIREHOSE: "Firehose"}


def throughput(ordered: Sequence[Ordered]) -> Table:
    """Return the table of what was measured on the emulator."""
    columns = [
        "ordered by",
        "publishers",
        "published a second",
        "events a second",
        "slowest to fastest",
        "over `topic`",
    ]
    rows = [
        [
            f"`{one.order_by}`",
            str(one.publishers),
            f"{one.published_per_second:.0f}",
            f"{statistics.median(one.events_per_second):.0f}",
            f"{one.events_per_second[0]:.0f} to {one.events_per_second[-1]:.0f}",
            f"{one.over_topic:.2f}",
            str(one.missing),
            str(one.out_of_order),
        ]
        for one in ordered
    ]
    note = (
        f"{EVENTS} events over {TOPICS} topics in turn, by SQS as fast as publishers can, from the first call until "
        f"{SUBSCRIBERS} subscribers have the last event; medians of {ROUNDS} rounds in which all take turns, and of "
        "the ratio in each. Our client sends up to ten events a call, but no two of a message group in one: by `topic` "
        "ten, and otherwise one. The emulator works on one batch of an ordered exchange at a time, whatever groups it "
        "is of: so this compares what batches take, and has nothing of what runs side by side on AWS."
    )
    return Table("Events a second, by what keeps its order", [*columns, "missing", "out of order"], rows, note)


def calculated(batches: Sequence[Batch]) -> Table:
    """Return the table of what batches ask, and what is calculated of it."""
    columns = ["ordered by", "topics", "events a batch", *(f"calls of {name}" for name in NAMES.values())]
    rows = [
        [
            f"`{one.batch.order_by}`",
            str(one.batch.topics),
            f"{one.batch.events:.1f}",
            *(f"{one.batch.calls.get(service, 0):.1f}" for service in NAMES),
            f"{one.milliseconds:.0f}",
            f"{one.one_by_one:.0f}",
            "-" if one.side_by_side is None else f"{one.side_by_side:,.0f}",
        ]
        for one in rates(batches)
    ]
    called = ", ".join(f"{ASSUMED.calls[one]:.0f} ms a call of {name}" for one, name in NAMES.items())
    note = (
        "Events and calls of a batch of the function `route` are counted on the emulator, where a publisher's events "
        f"are of so many topics in turn. The rest is a calculation, not a measurement: {called}, one after the other, "
        f"and {ASSUMED.around:.0f} ms between a batch and the next of the same message group, all assumed. Lambda "
        f"works on one batch of a group at a time, and on {AT_ONCE} of an exchange (`route_concurrency`): by "
        "`exchange` there is one group, by `publisher` one for each publisher, by `topic` one for each topic. Batches "
        "side by side share no group, and by `publisher` no topic either, or one waits for the other. SQS hands over "
        "together what it has of one group, where it can: by `topic` that is the row of one topic. It takes "
        f"{CALLS_PER_GROUP} calls a second of a group, and so as many events of our client's."
    )
    ends = ["ms a batch, assumed", "events a second", f"{AT_ONCE} side by side"]
    return Table("What order makes on AWS", [*columns, *ends], rows, note)


def promises(ordered: Sequence[Ordered]) -> Iterator[tuple[str, bool]]:
    """Yield what is promised of any order, and whether this run kept it."""
    yield "no event is missing, whatever keeps its order", not any(one.missing for one in ordered)
    yield "none is out of the order that its exchange keeps", not any(one.out_of_order for one in ordered)
