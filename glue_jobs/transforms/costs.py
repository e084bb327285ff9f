"""Daily cost by capability: billed units counted from the history, priced from a table."""

import json
from datetime import date
from functools import reduce
from operator import add, or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from glue_jobs.transforms.events import within_days
from signalbox.history import prices

NOT_PRICED = "not priced"
USES = "array<struct<item:string,least:double,most:double>>"
SECONDS_OF_DAY = 86_400
DIGITS = 12  # of USD: sums of prices differ from their shortest form after these
COUNTS = ("number", "bytes", "pieces")
COLUMNS = ("day", "capability", "what", "item", "number", "bytes", "units_least", "units_most", "usd_least", "usd_most")


def cost_counts(events: DataFrame, first: date, *, last: date) -> DataFrame:
    """Count the billable actions of the days from `first` to `last`; an event may be several actions.

    `bytes` is the size of their messages, and `pieces` the number of 64 KiB chunks that SQS bills for them.
    """
    own = events.transform(within_days, first, last=last).withColumn("size", F.coalesce("size_bytes", F.lit(0)))
    # Rolled up first, because classifying an event is slower than counting it.
    rolled_up = own.groupBy(
        *("day", "capability", "kind", "outcome"),
        F.coalesce(F.col("destination").endswith(".fifo"), F.lit(col=False)).alias("is_fifo"),
        F.col("source").eqNullSafe("sqs").alias("is_by_sqs"),
    ).agg(*_sums(), _posted_events())
    found = F.array(*_actions(), _action(F.lit("history"), "event"), _posted())
    actions = rolled_up.select("day", F.explode(F.array_compact(found)).alias("action")).select("day", "action.*")
    others = own.transform(_publications).unionByName(own.transform(_connection_minutes))
    counted = actions.unionByName(others).groupBy("day", "capability", "what", "is_fifo")
    return counted.agg(*(F.sum(name).cast("long").alias(name) for name in COUNTS))


def _sums() -> list[Column]:
    pieces = F.greatest(F.lit(1), F.ceil(F.col("size") / prices.REQUEST_BYTES))
    return [F.count("*").alias("number"), F.sum("size").alias("bytes"), F.sum(pieces).alias("pieces")]


def _actions() -> list[Column]:
    kind, outcome, capability = F.col("kind"), F.col("outcome"), F.col("capability")
    is_retried = (kind == "routed") & (outcome == "retried")
    is_copy = (kind == "routed") & ~is_retried
    is_exchange, is_splitting, is_rendezvous = (capability == name for name in ("exchange", "splitting", "rendezvous"))
    is_shared = is_splitting & is_copy & (outcome == "copied")
    is_forwarded = is_splitting & ((is_copy & (outcome != "copied")) | (kind == "returned"))
    is_refusal = (kind == "timeout") | ((kind == "offer") & outcome.isin("denied", "stale", "rejected"))
    is_end = is_rendezvous & ((kind == "answer") | is_refusal)
    is_poll = is_rendezvous & (kind == "proxy_poll")
    is_fifo, is_by_sqs = F.col("is_fifo"), F.col("is_by_sqs")
    return [
        F.when(is_exchange & is_copy, _action(capability, "copy", is_fifo=is_fifo)),
        F.when(is_exchange & is_retried, _action(capability, "retry", is_fifo=is_fifo)),
        F.when(is_shared, _action(capability, "copy", is_fifo=is_fifo)),
        F.when(is_forwarded, _action(capability, "message", is_fifo=is_fifo)),
        F.when((is_exchange | is_splitting) & (kind == "dead_letter"), _action(capability, "dead letter")),
        F.when(is_rendezvous & (kind == "answer"), _action(capability, "answer")),
        F.when(is_rendezvous & is_refusal, _action(capability, "refusal")),
        F.when(is_end & is_by_sqs, _action(capability, "client by SQS")),
        F.when(is_end & ~is_by_sqs, _action(capability, "client by HTTP")),
        F.when(is_poll & (outcome != "matched"), _action(capability, "poll")),
        F.when(is_exchange & (kind == "logged"), _action(capability, "logged event")),
        *_live_actions(),
    ]


def _live_actions() -> list[Column]:
    kind, outcome, capability = F.col("kind"), F.col("outcome"), F.col("capability")
    is_session = kind == "session"
    priced = {
        "delivery": (kind == "delivered") & (outcome == "posted"),
        "session start": is_session & (outcome == "started"),
        "session end": is_session & (outcome == "ended"),
        "refused login": is_session & (outcome == "refused"),
        "subscription": kind == "subscription",
        "dropped publication": kind == "publication",
    }
    is_priced = reduce(or_, priced.values())
    is_live = capability == "live"
    is_known = capability.isin("exchange", "splitting", "rendezvous") | (is_live & is_priced)
    fifo = F.lit(col=True)
    found = [F.when(is_live & condition, _action(capability, what, is_fifo=fifo)) for what, condition in priced.items()]
    return [*found, F.when(~is_known, _action(capability, NOT_PRICED))]


def _action(capability: Column, what: str, *, is_fifo: Column | None = None) -> Column:
    fifo = F.lit(col=False) if is_fifo is None else is_fifo
    return F.struct(capability.alias("capability"), F.lit(what).alias("what"), fifo.alias("is_fifo"), *COUNTS)


def _posted_events() -> Column:
    """Count the events that were posted to connections; a row of the history counts those of a batch in its labels."""
    numbers = (F.coalesce(F.col("labels").getItem(name).cast("long"), F.lit(0)) for name in ("events", "past"))
    is_posted = (F.col("capability") == "live") & (F.col("kind") == "delivered") & (F.col("outcome") == "posted")
    return F.sum(F.when(is_posted, reduce(add, numbers))).alias("posted")


def _posted() -> Column:
    return F.when(F.col("posted").isNotNull(), F.struct(*_of_live("posted event", F.col("posted"))))


def _publications(events: DataFrame) -> DataFrame:
    """Count published messages, each once a day whatever its number of copies, and ordered ones separately."""
    is_dead = (F.col("kind") == "dead_letter") & F.col("topic").isNotNull()
    is_routing = F.col("kind").isin("routed", "unrouted", "logged") | is_dead
    own = events.where((F.col("capability") == "exchange") & is_routing)
    messages = own.groupBy("day", "source", "message_id").agg(F.min("size").alias("size"))
    is_fifo = F.coalesce(F.col("source").endswith(".fifo"), F.lit(col=False)).alias("is_fifo")
    counted = messages.groupBy("day", is_fifo).agg(*_sums())
    what = F.when(F.col("is_fifo"), "ordered publication").otherwise("publication").alias("what")
    return counted.select("day", F.lit("exchange").alias("capability"), what, "is_fifo", *COUNTS)


def _connection_minutes(events: DataFrame) -> DataFrame:
    """Count the minutes of connections in each day, from the events of their sessions; each is billed as begun.

    A connection that was open at midnight, or whose end is not in the history, counts with its longest duration within
    the day.
    """
    is_session = (F.col("capability") == "live") & (F.col("kind") == "session")
    seconds = F.unix_timestamp("occurred_at")
    started, ended = (F.min(F.when(F.col("outcome") == name, seconds)).alias(name) for name in ("started", "ended"))
    # An id is `session:started:NUMBER:FRAME`.
    session = F.split("event_id", ":").getItem(2).alias("session")
    sessions = events.where(is_session & F.col("outcome").isin("started", "ended")).groupBy("day", session)
    midnight, longest = F.unix_timestamp(F.col("day").cast("timestamp")), 60 * prices.LONGEST_CONNECTION_MINUTES
    first = F.coalesce("started", F.greatest(F.col("ended") - longest, midnight))
    last = F.coalesce("ended", F.least(F.col("started") + longest, midnight + SECONDS_OF_DAY))
    minutes = F.greatest(F.lit(1), F.ceil((last - first) / 60))
    counted = sessions.agg(started, ended).groupBy("day").agg(F.sum(minutes).alias("number"))
    return counted.select("day", *_of_live(prices.CONNECTION_MINUTE, F.col("number")))


def _of_live(what: str, number: Column) -> list[Column]:
    """Return the columns of a count of live without sizes."""
    named = {"capability": F.lit("live"), "what": F.lit(what), "is_fifo": F.lit(col=False)}
    sizes = {"number": number, "bytes": F.lit(0).cast("long"), "pieces": F.lit(0).cast("long")}
    return [column.alias(name) for name, column in (named | sizes).items()]


def cost_daily(counts: DataFrame) -> DataFrame:
    """Return one row for each day, capability, action and billed item, with units and USD.

    The lower bound assumes full calls, the upper bound one message in each call. Actions without a price have a row
    too.
    """
    used = counts.withColumn("use", F.explode(_uses_of(F.col("capability"), F.col("what"))))
    item = F.when(F.col("use.item") != prices.SQS, F.col("use.item")).otherwise(
        F.when(F.col("is_fifo"), F.lit("SQS FIFO request")).otherwise(F.lit("SQS standard request"))
    )
    is_sqs = F.col("use.item").isin(prices.SQS, prices.FAIR)
    # A full call has ten messages, but at most the bytes of one billed request.
    pieces_of_calls = F.greatest(F.col("number") / prices.REQUEST_MESSAGES, F.col("bytes") / prices.REQUEST_BYTES)
    full = F.when(is_sqs, pieces_of_calls * prices.REQUEST_MESSAGES).otherwise(F.col("number"))
    single = F.when(is_sqs, F.col("pieces")).otherwise(F.col("number"))
    least, most = _whole(full * F.col("use.least")), _whole(single * F.col("use.most"))
    billed = used.where(~(F.col("is_fifo") & (F.col("use.item") == prices.FAIR)))
    units = billed.withColumn("item", item).withColumn("units_least", least).withColumn("units_most", most)
    summed = units.groupBy("day", "capability", "what", "item").agg(
        *(F.sum(name).cast("long").alias(name) for name in ("number", "bytes", "units_least", "units_most"))
    )
    price = F.coalesce(_map(prices.PRICES)[F.col("item")], F.lit(0.0)) / 1_000_000
    return (
        summed.withColumn("usd_least", F.round(F.col("units_least") * price, DIGITS))
        .withColumn("usd_most", F.round(F.col("units_most") * price, DIGITS))
        .select(*COLUMNS)
    )


def _whole(units: Column) -> Column:
    # Rounded first: sums of binary fractions may exceed a whole number slightly, which ceil would round up.
    return F.ceil(F.round(units, 6))


def _uses_of(capability: Column, what: Column) -> Column:
    # One constant map: a condition for each usage would take long to build, plan and compile.
    uses: dict[str, list[dict[str, object]]] = {}
    for usage in prices.USAGES:
        uses.setdefault(f"{usage.capability} {usage.what}", []).append(_use(usage.item, usage.least, usage.most))
    known = F.from_json(F.lit(json.dumps(uses)), f"map<string,{USES}>")
    not_priced = F.from_json(F.lit(json.dumps([_use(NOT_PRICED, 0, 0)])), USES)
    return F.when(what == NOT_PRICED, not_priced).otherwise(known[F.concat_ws(" ", capability, what)])


def _use(item: str, least: float, most: float) -> dict[str, object]:
    return {"item": item, "least": float(least), "most": float(most)}


def _map(values: dict[str, float]) -> Column:
    return F.create_map(*(F.lit(part) for entry in values.items() for part in entry))
