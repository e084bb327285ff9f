"""Report tables and checks of the ordering benchmark."""

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
    """Return the table of the rates measured on the emulator."""
    columns = [
        "ordered by",
        "publishers",
        "published per second",
        "events per second",
        "slowest to fastest",
        "relative to `topic`",
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
        f"{EVENTS} events, round-robin over {TOPICS} topics, are published over SQS at full speed. The time is from "
        f"the first call until {SUBSCRIBERS} subscribers have the last event. Values are medians of {ROUNDS} rounds in "
        "which the modes alternate, and of the ratio in each round. The client sends up to ten events per call, but no "
        "two of one message group: ten by `topic`, otherwise one. The emulator handles one batch of an ordered "
        "exchange at a time, whatever its groups, so the table compares the cost of batches and excludes the "
        "concurrency of AWS."
    )
    return Table("Events per second by ordering mode", [*columns, "missing", "out of order"], rows, note)


def calculated(batches: Sequence[Batch]) -> Table:
    """Return the table of calls per batch, with the rates calculated from them."""
    columns = ["ordered by", "topics", "events per batch", *(f"{name} calls" for name in NAMES.values())]
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
    durations = ", ".join(f"{ASSUMED.calls[one]:.0f} ms per {name} call" for one, name in NAMES.items())
    note = (
        "Events and calls per batch of the function `route` are counted on the emulator, with a publisher's events "
        "round-robin over the topics. The rest is calculated, not measured, from assumed durations: "
        f"{durations}, one after another but for the history, and {ASSUMED.around:.0f} ms between two batches of one "
        "message group. Lambda "
        f"handles one batch of a group at a time, and {AT_ONCE} batches of an exchange (`route_concurrency`). There is "
        "one group per exchange, publisher or topic, according to the mode. Concurrent batches share no group, and "
        "with mode `publisher` no topic either, or one waits for the other. SQS prefers to return messages of one "
        "group together: with mode `topic`, those of one topic. It accepts "
        f"{CALLS_PER_GROUP} calls per second for a group, and hence that many events of the Signalbox client."
    )
    ends = ["ms per batch, assumed", "events per second", f"{AT_ONCE} concurrent batches"]
    return Table("Calculated events per second on AWS", [*columns, *ends], rows, note)


def promises(ordered: Sequence[Ordered]) -> Iterator[tuple[str, bool]]:
    """Yield each guarantee of ordered exchanges, and whether this run kept it."""
    yield "no event is missing in any ordering mode", not any(one.missing for one in ordered)
    yield "no event violates the order of its exchange", not any(one.out_of_order for one in ordered)
