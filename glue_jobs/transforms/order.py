"""The order audit: gaps, duplicates and reordered messages of each queue, with the events that prove them.

Only ordered exchanges number their messages, from 1 in each topic, and after a long pause from a number of that day.
The deliveries to a queue are compared with each other and with the other outcomes of the same numbers.
"""

from datetime import date

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from glue_jobs.transforms.events import within_days

TOPIC = ("exchange", "topic")
SUBSCRIBER = (*TOPIC, "queue")
EVIDENCE = ("before_event_id", "before_at", "after_event_id", "after_at")
CAUSES = ("dead", "waiting", "elsewhere", "nowhere")
COLUMNS = ("day", *SUBSCRIBER, "finding", "first_sequence", "last_sequence", "number", *CAUSES, *EVIDENCE)
NUMBERS_OF_A_DAY = 10**9  # the numbers after a pause begin with a multiple of it: those in between are no gap
AUDITED, SEEN, BEGUN, LEFT_OUT = "audited", "seen", "begun", "left_out"
FINDINGS = ("gap", "duplicate", "reordered")


def order_facts(events: DataFrame, first: date, *, last: date) -> DataFrame:
    """Return the outcomes of numbered messages in the days from `first` to `last`; `queue` is null if not routed."""
    is_numbered = F.col("topic").isNotNull() & F.col("sequence").isNotNull()
    was_delivered = (F.col("kind") == "routed") & (F.col("outcome") != "retried")
    state = (
        F.when(was_delivered, F.lit("delivered"))
        .when(F.col("kind") == "routed", F.lit("waiting"))
        .when(F.col("kind") == "dead_letter", F.lit("dead"))
        .when(F.col("kind").isin("unrouted", "logged"), F.lit("elsewhere"))
    )
    own = events.where(is_numbered).withColumn("state", state).where(F.col("state").isNotNull())
    return own.transform(within_days, first, last=last).select(
        "day",
        F.col("source").alias("exchange"),
        "topic",
        F.col("destination").alias("queue"),
        "sequence",
        "state",
        "occurred_at",
        "event_id",
        "message_id",
        F.lit(col=False).alias("is_head"),
    )


def last_positions(audit: DataFrame) -> DataFrame:
    """Return the highest number of each subscriber after the days of an audit, in the form of `order_facts`."""
    last = F.max_by(F.struct("day", "after_at", "after_event_id"), "last_sequence")
    seen = audit.where(F.col("finding") == SEEN).groupBy(*SUBSCRIBER)
    found = seen.agg(F.max("last_sequence").alias("sequence"), last.alias("last"))
    return found.select(
        "last.day",
        *SUBSCRIBER,
        "sequence",
        F.lit("delivered").alias("state"),
        F.col("last.after_at").alias("occurred_at"),
        F.col("last.after_event_id").alias("event_id"),
        F.lit(None).cast("string").alias("message_id"),
        F.lit(col=True).alias("is_head"),
    )


def facts_by_queue(facts: DataFrame, positions: DataFrame) -> DataFrame:
    """Return the facts and last positions, partitioned by topic and queue, as the input of `order_audit`.

    This is the only shuffle of all facts of an audit, which reads its input several times. All queues of one topic may
    have a hundred times the rows of one.
    """
    columns = ("day", *SUBSCRIBER, "sequence", "state", "occurred_at", "event_id", "message_id", "is_head")
    return facts.unionByName(positions).repartition(*SUBSCRIBER).select(*columns)


def order_audit(facts_with_positions: DataFrame, days: DataFrame) -> DataFrame:
    """Return the audit of `days`: a row for each finding, each `seen` subscriber, and each `audited` day.

    - `gap`: the numbers from `first_sequence` to `last_sequence` did not reach the queue, but their neighbours did.
      `number` is their count. `dead` of them are dead letters of the queue, `waiting` wait for a retry, `elsewhere`
      have events of other queues or of no queue, and `nowhere` have no event. The last two are null in a gap that
      begins before the audited days.
    - `duplicate`: two messages have the same number, or a message has two numbers.
    - `reordered`: a number was delivered after a higher one, by the clocks of the functions, in milliseconds.

    `before` is the earlier event, or the event of the lower number; `after` is the other one. A day's `audited` row has
    the number of audited copies; a day with no other row than `audited` and `seen` has no findings.
    """
    facts = facts_with_positions.where(~F.col("is_head"))
    found = facts_with_positions.transform(_findings).unionByName(facts_with_positions.transform(_messages_twice))
    audit = found.unionByName(facts.transform(_seen)).unionByName(_audited(facts, days))
    return audit.select(*COLUMNS)


def _findings(facts_with_positions: DataFrame) -> DataFrame:
    numbers = facts_with_positions.transform(_numbers)
    findings = F.explode(F.array(_gap(), _reordered(), _number_twice()))
    found = numbers.select(*SUBSCRIBER, findings.alias("found")).where("found IS NOT NULL")
    return found.select(*SUBSCRIBER, "found.*").transform(_with_unknown_causes, facts_with_positions)


def _with_unknown_causes(findings: DataFrame, facts_with_positions: DataFrame) -> DataFrame:
    """Complete the causes of gaps: of the numbers that are no dead letter and do not wait, the topic may know some."""
    numbers = facts_with_positions.select(*TOPIC, "sequence").distinct()
    # The count of the topic's known numbers up to this one.
    place = F.row_number().over(Window.partitionBy(*TOPIC).orderBy("sequence"))
    places = numbers.withColumn("place", place)
    # A gap has a known number before and after it.
    before, after = (
        places.select(*TOPIC, (F.col("sequence") + step).alias(end), F.col("place").alias(name))
        for step, end, name in ((1, "first_sequence", "before"), (-1, "last_sequence", "after"))
    )
    is_gap = F.col("finding") == "gap"
    gaps = findings.where(is_gap).join(before, on=[*TOPIC, "first_sequence"]).join(after, on=[*TOPIC, "last_sequence"])
    known = F.col("after") - F.col("before") - 1
    causes = {"elsewhere": known - F.col("dead") - F.col("waiting"), "nowhere": F.col("number") - known}
    completed = {name: F.when(F.col("elsewhere").isNotNull(), cause.cast("long")) for name, cause in causes.items()}
    return gaps.withColumns(completed).select(*findings.columns).unionByName(findings.where(~is_gap))


def _numbers(facts_with_positions: DataFrame) -> DataFrame:
    """Return each number delivered to a queue: first and last delivery, and next higher number."""
    is_delivered = F.col("state") == "delivered"
    delivery = F.when(is_delivered, F.struct("occurred_at", "event_id", "day"))
    of_queues = facts_with_positions.where(F.col("queue").isNotNull())
    numbers = of_queues.groupBy(*SUBSCRIBER, "sequence").agg(
        F.min(delivery).alias("first"),
        F.max(delivery).alias("again"),
        F.count(delivery).alias("copies"),
        F.max(F.col("state") == "dead").alias("is_dead"),
        F.max(F.col("state") == "waiting").alias("is_waiting"),
        F.max("is_head").alias("is_head"),
    )
    return numbers.transform(_with_next_delivery).select(
        *SUBSCRIBER, "sequence", "first", "again", "copies", "is_head", "dead", "waiting", "next", "overtook"
    )


def _with_next_delivery(numbers: DataFrame) -> DataFrame:
    """Add the `next` higher number of the queue, and as `overtook` the earliest delivery of all higher numbers."""
    is_lost = F.col("first").isNull()
    downwards = Window.partitionBy(*SUBSCRIBER).orderBy(F.col("sequence").desc())
    so_far = downwards.rowsBetween(Window.unboundedPreceding, 0)
    above = downwards.rowsBetween(Window.unboundedPreceding, -1)
    counted = numbers.withColumn("dead", F.count(F.when(is_lost & F.col("is_dead"), 1)).over(so_far))
    is_waiting = is_lost & F.col("is_waiting") & ~F.col("is_dead")
    counted = counted.withColumn("waiting", F.count(F.when(is_waiting, 1)).over(so_far))
    delivered = F.when(~is_lost, F.struct("sequence", "dead", "waiting", "first"))
    came = F.when(~is_lost, F.struct("first.occurred_at", "first.event_id"))
    beside = counted.withColumn("next", F.last(delivered, ignorenulls=True).over(above))
    return beside.withColumn("overtook", F.min(came).over(above)).where(~is_lost)


def _gap() -> Column:
    missing = F.col("next.sequence") - F.col("sequence") - 1
    dead, waiting = F.col("dead") - F.col("next.dead"), F.col("waiting") - F.col("next.waiting")
    # The last two are those of `_with_unknown_causes`, but null in a gap that begins before the audited days.
    unknown = F.when(~F.col("is_head"), F.lit(0))
    causes = [dead, waiting, unknown, unknown]
    gap = F.struct(
        F.col("next.first.day").alias("day"),
        F.lit("gap").alias("finding"),
        (F.col("sequence") + 1).alias("first_sequence"),
        (F.col("next.sequence") - 1).alias("last_sequence"),
        missing.alias("number"),
        *(cause.cast("long").alias(name) for name, cause in zip(CAUSES, causes, strict=True)),
        *_evidence(F.col("first"), F.col("next.first")),
    )
    day, next_day = (F.floor(number / NUMBERS_OF_A_DAY) for number in (F.col("sequence"), F.col("next.sequence")))
    return F.when((missing > 0) & (day == next_day), gap)


def _reordered() -> Column:
    is_late = ~F.col("is_head") & (F.col("overtook.occurred_at") < F.col("first.occurred_at"))
    found = _finding("reordered", F.col("overtook"), F.col("first"), day=F.col("first.day"))
    return F.when(is_late, F.struct(*found))


def _number_twice() -> Column:
    is_twice = (F.col("copies") > 1) & (F.col("first.event_id") != F.col("again.event_id"))
    found = _finding("duplicate", F.col("first"), F.col("again"), day=F.col("again.day"))
    return F.when(is_twice, F.struct(*found))


def _messages_twice(facts_with_positions: DataFrame) -> DataFrame:
    is_named = F.col("message_id").isNotNull() & F.col("queue").isNotNull()
    own = facts_with_positions.where((F.col("state") == "delivered") & is_named)
    # First hashes, which are fast to group; then the events of the few duplicates, by message.
    came = own.withColumn("hash", F.xxhash64("message_id"))
    numbers = came.groupBy(*SUBSCRIBER, "hash").agg(
        F.min("sequence").alias("lowest"), F.max("sequence").alias("highest")
    )
    several = numbers.where(F.col("lowest") != F.col("highest")).select(*SUBSCRIBER, "hash").hint("shuffle_hash")
    delivery = F.struct("occurred_at", "event_id", "day")
    messages = came.join(several, on=[*SUBSCRIBER, "hash"], how="inner").groupBy(*SUBSCRIBER, "message_id")
    found = messages.agg(
        F.min(delivery).alias("first"),
        F.max(delivery).alias("again"),
        F.min("sequence").alias("lowest"),
        F.max("sequence").alias("sequence"),
    )
    twice = found.where(F.col("lowest") != F.col("sequence"))
    return twice.select(*SUBSCRIBER, *_finding("duplicate", F.col("first"), F.col("again"), day=F.col("again.day")))


def _finding(finding: str, before: Column, after: Column, *, day: Column) -> list[Column]:
    return [
        day.alias("day"),
        F.lit(finding).alias("finding"),
        F.col("sequence").alias("first_sequence"),
        F.col("sequence").alias("last_sequence"),
        F.lit(1).cast("long").alias("number"),
        *(F.lit(None).cast("long").alias(name) for name in CAUSES),
        *_evidence(before, after),
    ]


def _evidence(before: Column, after: Column) -> list[Column]:
    return [
        before["event_id"].alias("before_event_id"),
        before["occurred_at"].alias("before_at"),
        after["event_id"].alias("after_event_id"),
        after["occurred_at"].alias("after_at"),
    ]


def _seen(facts: DataFrame) -> DataFrame:
    came = facts.where((F.col("state") == "delivered") & F.col("queue").isNotNull())
    seen = came.groupBy("day", *SUBSCRIBER).agg(
        F.min("sequence").alias("first_sequence"),
        F.max("sequence").alias("last_sequence"),
        F.count("*").alias("number"),
    )
    ends = came.join(seen.hint("shuffle_hash"), on=["day", *SUBSCRIBER], how="inner").where(
        (F.col("sequence") == F.col("first_sequence")) | (F.col("sequence") == F.col("last_sequence"))
    )
    delivery = F.struct("sequence", "occurred_at", "event_id")
    found = ends.groupBy("day", *SUBSCRIBER, "first_sequence", "last_sequence", "number").agg(
        F.min(delivery).alias("first"), F.max(delivery).alias("last")
    )
    return found.select(
        "day",
        *SUBSCRIBER,
        F.lit(SEEN).alias("finding"),
        "first_sequence",
        "last_sequence",
        "number",
        *(F.lit(None).cast("long").alias(name) for name in CAUSES),
        *_evidence(F.col("first"), F.col("last")),
    )


def _audited(facts: DataFrame, days: DataFrame) -> DataFrame:
    came = (
        facts.where((F.col("state") == "delivered") & F.col("queue").isNotNull())
        .groupBy("day")
        .agg(F.count("*").alias("number"))
    )
    return day_rows(days.join(came, on="day", how="left"), AUDITED, F.coalesce("number", F.lit(0)))


def day_rows(days: DataFrame, finding: str, number: Column) -> DataFrame:
    """Return a row of the audit for each of the days, without a queue."""
    return days.select(
        "day",
        *(F.lit(None).cast("string").alias(name) for name in SUBSCRIBER),
        F.lit(finding).alias("finding"),
        *(F.lit(None).cast("long").alias(name) for name in ("first_sequence", "last_sequence")),
        number.cast("long").alias("number"),
        *(F.lit(None).cast("long").alias(name) for name in CAUSES),
        *(F.lit(None).cast("timestamp" if name.endswith("_at") else "string").alias(name) for name in EVIDENCE),
    )
