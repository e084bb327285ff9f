"""The tables of history computed with Polars, with the time of each: `python in_polars.py RAW FORMAT OUT`."""

import json
import sys
import time
from pathlib import Path

import polars as pl

STARTED = time.perf_counter()
LABELS = ("publisher", "target", "session", "nat", "country", "proxy_type", "relay_pattern", "held", "party")
# 64 bits for every summed number: a sum of 32 bits overflows silently.
TYPES = {
    "version": pl.Int64,
    "event_id": pl.String,
    "occurred_at": pl.String,
    **dict.fromkeys(("capability", "kind", "outcome", "reason", "message_id", "topic"), pl.String),
    "sequence": pl.Int64,
    **dict.fromkeys(("source", "destination"), pl.String),
    **dict.fromkeys(("size_bytes", "latency_ms", "attempt"), pl.Int64),
    "labels": pl.Struct(dict.fromkeys(LABELS, pl.String)),
}
COUNT_LINES = (
    *(f"snowflake-ips-{kind}" for kind in ("standalone", "webext", "badge", "iptproxy", "bloco", "total")),
    *("snowflake-idle-count", "snowflake-proxy-poll-with-relay-url-count"),
    *("snowflake-proxy-poll-without-relay-url-count", "snowflake-proxy-rejected-for-relay-url-count"),
    *("client-denied-count", "client-restricted-denied-count", "client-unrestricted-denied-count"),
    *("client-snowflake-match-count", "client-snowflake-timeout-count"),
    *(f"client-{method}-count" for method in ("http", "ampcache", "sqs")),
    *(f"snowflake-ips-nat-{nat}" for nat in ("restricted", "unrestricted", "unknown")),
)
SPLIT_TOTALS = [
    *(("routed-total", outcome) for outcome in ("session", "deployed", "copied")),
    *(("returned-total", outcome) for outcome in ("session", "deployed", "original")),
    ("dead_letter-total", "dead"),
    *(("session-total", outcome) for outcome in ("started", "ready", "ended")),
]
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
KIND, OUTCOME = pl.col("kind"), pl.col("outcome")
NOTHING = pl.lit(None, dtype=pl.String)


def main(raw: str, file_format: str, out: str) -> None:
    """Compute all tables into `OUT/<table>`."""
    Path(out, "events").mkdir(parents=True)
    source = _source(raw, file_format)
    label = pl.struct(
        "occurred_at", pl.struct(name for name in TYPES if name not in ("occurred_at", "event_id")).hash()
    )
    first = source.sort("event_id", "occurred_at", label.struct[1]).unique(
        "event_id", keep="first", maintain_order=True
    )
    day = pl.col("occurred_at").dt.date().alias("day")
    kept = first.with_columns(day).sort("day", "capability", "topic", "sequence").collect(engine="streaming")
    for number, part in enumerate(kept.partition_by("day")):
        part.write_parquet(f"{out}/events/{number}.parquet", compression="zstd")
    del kept
    before = _print_seconds("events", STARTED)
    for name, report in REPORTS.items():
        report(pl.scan_parquet(f"{out}/events/*.parquet")).sink_parquet(f"{out}/{name}.parquet", compression="zstd")
        before = _print_seconds(name, before)


def _source(raw: str, file_format: str) -> pl.LazyFrame:
    if file_format == "parquet":
        maps = pl.scan_parquet(f"{raw}/*/*/*.parquet", hive_partitioning=False)
        found = [pl.col("labels").map.get(name).alias(name) for name in LABELS]
        return maps.with_columns(pl.struct(found).alias("labels"))
    lines = pl.scan_ndjson(f"{raw}/*/*/*.json.gz", schema=TYPES)
    moment = pl.col("occurred_at").str.to_datetime("%Y-%m-%d %H:%M:%S%.3f", time_unit="us", time_zone="UTC")
    return lines.with_columns(moment)


def _print_seconds(name: str, before: float) -> float:
    now = time.perf_counter()
    print(json.dumps({"name": name, "seconds": now - before}), flush=True)
    return now


def _label(name: str) -> pl.Expr:
    return pl.col("labels").struct[name]


def _whole(expression: pl.Expr) -> pl.Expr:
    return (expression.round(6) + 0.5).floor().cast(pl.Int64)


def _quantile(share: float) -> pl.Expr:
    return _whole(pl.col("latency_ms").quantile(share, interpolation="linear"))


def _percentiles(rows: pl.LazyFrame, *keys: str) -> pl.LazyFrame:
    """Return the percentiles of each group, one row for each percentile."""
    wide = rows.group_by(keys).agg(_quantile(share).alias(name) for name, share in PERCENTILES.items())
    return wide.unpivot(on=list(PERCENTILES), index=list(keys), variable_name="percentile", value_name="exact")


def _rendezvous(events: pl.LazyFrame) -> pl.LazyFrame:
    facts = events.filter(pl.col("capability") == "rendezvous").select(
        *("day", "occurred_at", "event_id", "kind", "outcome", "reason", "source", "latency_ms"),
        _label("nat").fill_null("unknown").alias("nat"),
        _label("country").fill_null("??").alias("country"),
        _label("proxy_type").fill_null("unknown").alias("proxy_type"),
        _label("relay_pattern").alias("pattern"),
        _label("party").alias("party"),
    )
    has_reason = pl.col("reason").eq_missing("no proxy")
    is_poll, is_with = KIND == "proxy_poll", pl.col("pattern").eq_missing("with")
    is_denied = ((KIND == "offer") & OUTCOME.is_in(["denied", "stale"])) | ((KIND == "timeout") & has_reason)
    is_silent, is_match, is_open = (KIND == "timeout") & ~has_reason, KIND == "answer", pl.col("nat") == "unrestricted"
    is_counted = (is_denied | is_match | is_silent) & pl.col("source").is_in(["http", "ampcache", "sqs"])
    single = {
        "snowflake-idle-count": is_poll & (OUTCOME == "idle"),
        "snowflake-proxy-poll-with-relay-url-count": is_poll & is_with,
        "snowflake-proxy-poll-without-relay-url-count": is_poll & ~is_with,
        "snowflake-proxy-rejected-for-relay-url-count": is_poll & (OUTCOME == "relay_rejected"),
        "client-denied-count": is_denied,
        "client-restricted-denied-count": is_denied & ~is_open,
        "client-unrestricted-denied-count": is_denied & is_open,
        "client-snowflake-match-count": is_match,
        "client-snowflake-timeout-count": is_silent,
    }
    sums = facts.group_by("day").agg(condition.sum().cast(pl.Int64).alias(name) for name, condition in single.items())
    lines = [sums.unpivot(index="day", variable_name="metric", value_name="exact").with_columns(NOTHING.alias("label"))]
    by_method = facts.filter(is_counted)
    method = pl.format("client-{}-count", "source").alias("metric")
    lines.append(_counted(by_method.select("day", method, NOTHING.alias("label"))))
    lines.append(
        _counted(by_method.select("day", pl.format("client-{}-ips", "source").alias("metric"), label="country"))
    )
    seen = facts.filter(is_poll & (OUTCOME != "relay_rejected") & pl.col("party").is_not_null())
    known = seen.filter(pl.col("proxy_type").is_in(["standalone", "webext", "badge", "iptproxy", "bloco"]))
    parties = pl.concat(
        [
            seen.select("day", pl.lit("snowflake-ips-total").alias("metric"), "party"),
            seen.select("day", pl.format("snowflake-ips-nat-{}", "nat").alias("metric"), "party"),
            known.select("day", pl.format("snowflake-ips-{}", "proxy_type").alias("metric"), "party"),
        ]
    ).unique()
    lines.append(_counted(parties.select("day", "metric", NOTHING.alias("label"))))
    firsts = seen.group_by("day", "party").agg(
        pl.col("country").sort_by("occurred_at", "event_id").first().alias("label")
    )
    lines.append(_counted(firsts.select("day", pl.lit("snowflake-ips").alias("metric"), "label")))
    zeros = events.select("day").unique().join(pl.LazyFrame({"metric": COUNT_LINES}), how="cross")
    lines.append(zeros.with_columns(NOTHING.alias("label"), pl.lit(0, dtype=pl.Int64).alias("exact")))
    columns = ("day", "metric", "label", "exact")
    totals = pl.concat([line.select(columns) for line in lines]).group_by("day", "metric", "label").agg(pl.sum("exact"))
    answers = facts.filter(is_match & pl.col("latency_ms").is_not_null())
    times = []
    for group, column in {
        "": NOTHING,
        "by-nat-": "nat",
        "by-country-": "country",
        "by-proxy-type-": "proxy_type",
    }.items():
        labelled = answers.select(
            "day", (pl.col(column) if isinstance(column, str) else column).alias("label"), "latency_ms"
        )
        metric = (pl.lit(f"time-to-answer-ms-{group}") + pl.col("percentile")).alias("metric")
        times.append(_percentiles(labelled, "day", "label").select("day", metric, "label", "exact"))
    is_rounded = pl.col("metric").str.starts_with("client-") | pl.col("metric").str.ends_with("-count")
    up = pl.col("exact") + 7 - (pl.col("exact") + 7) % 8
    shown = pl.when(is_rounded).then(up).otherwise("exact").alias("shown")
    return pl.concat([totals.select(columns), *times]).with_columns(shown)


def _counted(lines: pl.LazyFrame) -> pl.LazyFrame:
    return lines.group_by(pl.all()).agg(pl.len().cast(pl.Int64).alias("exact"))


def _splitting(events: pl.LazyFrame) -> pl.LazyFrame:
    facts = events.filter(pl.col("capability") == "splitting").select(
        "day", "kind", "outcome", "reason", "latency_ms", pl.col("source").alias("queue"), session=_label("session")
    )
    totals = facts.select("day", metric=KIND + "-total", label=OUTCOME, value=pl.lit(1, dtype=pl.Int64))
    known = pl.LazyFrame(SPLIT_TOTALS, schema=["metric", "label"], orient="row")
    zeros = events.select("day").unique().join(known, how="cross").with_columns(value=pl.lit(0, dtype=pl.Int64))
    summed = pl.concat([totals, zeros]).group_by("day", "metric", "label").agg(pl.sum("value"))
    reason = pl.when(KIND == "dead_letter").then("reason").otherwise("outcome")
    of_messages = facts.filter(KIND != "session").select("day", "queue", "session", metric=KIND, label=reason)
    details = _counted(of_messages).rename({"exact": "value"})
    has_time = pl.col("latency_ms").is_not_null()
    routed = facts.filter((KIND == "routed") & (OUTCOME != "copied") & has_time)
    ready = facts.filter((KIND == "session") & (OUTCOME == "ready") & has_time)
    route, begin = pl.lit("time-to-route-ms"), pl.lit("time-to-ready-ms")
    timed = [
        routed.select("day", "queue", "latency_ms", metric=route),
        routed.select("day", "latency_ms", queue=NOTHING, metric=route),
        ready.select("day", "latency_ms", queue=NOTHING, metric=begin),
    ]
    times = _percentiles(pl.concat(timed, how="diagonal"), "day", "metric", "queue")
    columns = ("day", "metric", "queue", "session", "label", "value")
    return pl.concat(
        [
            summed.with_columns(queue=NOTHING, session=NOTHING).select(columns),
            details.select(columns),
            times.rename({"percentile": "label", "exact": "value"}).with_columns(session=NOTHING).select(columns),
        ]
    )


def _topics(events: pl.LazyFrame) -> pl.LazyFrame:
    facts = events.filter(
        KIND.is_in(["routed", "unrouted", "logged", "dead_letter"]) & pl.col("topic").is_not_null()
    ).select(
        *("day", "topic", "message_id", "kind", "outcome"),
        pl.col("occurred_at").dt.truncate("1h").alias("hour"),
        pl.col("source").alias("exchange"),
        _label("publisher").alias("publisher"),
        pl.col("size_bytes").fill_null(0),
    )
    keys = ("day", "hour", "exchange", "topic", "publisher")
    is_delivered = (KIND == "routed") & (OUTCOME == "delivered")
    counts = {
        "copies": is_delivered,
        "retried": (KIND == "routed") & (OUTCOME == "retried"),
        "dead": KIND == "dead_letter",
        "dropped": (KIND == "unrouted") & (OUTCOME == "dropped"),
        "alternate": (KIND == "unrouted") & (OUTCOME == "alternate"),
        "logged": KIND == "logged",
    }
    publications = facts.group_by(*keys, "message_id").agg(
        *(condition.sum().cast(pl.Int64).alias(name) for name, condition in counts.items()),
        pl.col("size_bytes").min().alias("bytes_in"),
        pl.col("size_bytes").filter(is_delivered).sum().alias("bytes_out"),
    )
    summed = publications.group_by(keys).agg(
        pl.len().cast(pl.Int64).alias("publications"), pl.sum(*counts, "bytes_in", "bytes_out")
    )
    return summed.select(*keys, "publications", *counts, "bytes_in", "bytes_out")


def _deliveries(events: pl.LazyFrame) -> pl.LazyFrame:
    was_posted, is_stuck = ((KIND == "delivered") & (end == OUTCOME) for end in ("posted", "failed"))
    was_delivered = ((KIND == "routed") & (OUTCOME != "retried")) | (KIND == "answer") | was_posted
    state = (
        pl.when(was_delivered).then(pl.lit("delivered")).when((KIND == "routed") | is_stuck).then(pl.lit("retried"))
        .when(KIND == "dead_letter").then(pl.lit("dead")).alias("state")
    )  # fmt: skip
    is_delivered, is_dead = pl.col("state") == "delivered", pl.col("state") == "dead"
    facts = events.with_columns(state).filter(pl.col("state").is_not_null()).select(
        *("day", "capability", "source", "destination", "state", "attempt", "size_bytes", "latency_ms"),
        pl.col("occurred_at").dt.truncate("1h").alias("hour"),
        pl.when(is_dead).then("reason").alias("reason"),
    )  # fmt: skip
    latency = pl.col("latency_ms").filter(is_delivered)
    summed = facts.group_by("day", "hour", "capability", "source", "destination", "reason").agg(
        is_delivered.sum().cast(pl.Int64).alias("delivered"),
        (is_delivered & (pl.col("attempt") > 1)).sum().cast(pl.Int64).alias("again"),
        (pl.col("state") == "retried").sum().cast(pl.Int64).alias("retried"),
        is_dead.sum().cast(pl.Int64).alias("dead"),
        pl.col("size_bytes").filter(is_delivered).sum().alias("bytes"),
        *(
            _whole(latency.quantile(share, interpolation="linear")).alias(f"{name}_ms")
            for name, share in PERCENTILES.items()
        ),
        latency.max().alias("max_ms"),
    )
    names = ("delivered", "again", "retried", "dead", "bytes", "p50_ms", "p95_ms", "p99_ms", "max_ms")
    return summed.select("day", "hour", "capability", "source", "destination", "reason", *names)


TOPIC = ["exchange", "topic"]
SUBSCRIBER = [*TOPIC, "queue"]
CAUSES = ("dead", "waiting", "elsewhere", "nowhere")
EVIDENCE = ("before_event_id", "before_at", "after_event_id", "after_at")
AUDIT = ("day", *SUBSCRIBER, "finding", "first_sequence", "last_sequence", "number", *CAUSES, *EVIDENCE)
IS_DELIVERED = pl.col("state") == "delivered"


def _order(events: pl.LazyFrame) -> pl.LazyFrame:
    is_numbered = pl.col("topic").is_not_null() & pl.col("sequence").is_not_null()
    state = (
        pl.when((KIND == "routed") & (OUTCOME != "retried")).then(pl.lit("delivered"))
        .when(KIND == "routed").then(pl.lit("waiting")).when(KIND == "dead_letter").then(pl.lit("dead"))
        .otherwise(pl.lit("elsewhere")).alias("state")
    )  # fmt: skip
    facts = events.filter(is_numbered & KIND.is_in(["routed", "dead_letter", "unrouted", "logged"])).select(
        *("day", "topic", "sequence", "message_id"), state,
        exchange="source", queue="destination", at="occurred_at", id="event_id",
    )  # fmt: skip
    came = facts.filter(IS_DELIVERED)
    numbers = _numbers(facts, came)
    seen = _seen(came)
    audited = seen.group_by("day").agg(pl.sum("number")).with_columns(finding=pl.lit("audited"))
    days = events.select("day").unique().join(audited, on="day", how="left")
    days = days.with_columns(pl.col("number").fill_null(0), finding=pl.lit("audited"))
    found = [_gaps(numbers), _reordered(numbers), _numbers_twice(numbers), _messages_twice(came), seen, days]
    return pl.concat(found, how="diagonal").select(AUDIT)


def _numbers(facts: pl.LazyFrame, came: pl.LazyFrame) -> pl.LazyFrame:
    """Return each queue's numbers with the next higher one and the earliest delivery of all higher ones."""
    keys = [*SUBSCRIBER, "sequence"]
    states = facts.group_by(keys).agg(
        is_dead=(pl.col("state") == "dead").any(), is_waiting=(pl.col("state") == "waiting").any()
    )
    copies = came.group_by(keys).agg(
        *(pl.col(name).sort_by("at", "id").first().alias(f"first_{name}") for name in ("at", "id", "day")),
        *(pl.col(name).sort_by("at", "id").last().alias(f"again_{name}") for name in ("at", "id", "day")),
        copies=pl.len(),
    )
    numbers = states.join(copies, on=keys, how="left", nulls_equal=True)
    place = pl.col("sequence").rank("dense").over(TOPIC).cast(pl.Int64).alias("place")
    of_queues = numbers.with_columns(place).filter(pl.col("queue").is_not_null())
    downwards = of_queues.sort(*SUBSCRIBER, "sequence", descending=[False, False, False, True])
    is_lost = pl.col("first_id").is_null()
    counted = downwards.with_columns(
        dead=(is_lost & pl.col("is_dead")).cast(pl.Int64).cum_sum().over(SUBSCRIBER),
        waiting=(is_lost & pl.col("is_waiting") & ~pl.col("is_dead")).cast(pl.Int64).cum_sum().over(SUBSCRIBER),
    ).filter(~is_lost)
    names = ("sequence", "place", "dead", "waiting", "first_at", "first_id", "first_day")
    beside = counted.with_columns(pl.col(name).shift(1).over(SUBSCRIBER).alias(f"next_{name}") for name in names)
    arrivals = beside.sort(*SUBSCRIBER, "first_at", "first_id").with_columns(
        arrival=pl.int_range(pl.len()).over(SUBSCRIBER)
    )
    overtaking = arrivals.sort(*SUBSCRIBER, "sequence", descending=[False, False, False, True]).with_columns(
        overtook=pl.col("arrival").cum_min().shift(1).over(SUBSCRIBER)
    )
    first = arrivals.select(*SUBSCRIBER, overtook="arrival", overtook_at="first_at", overtook_id="first_id")
    return overtaking.join(first, on=[*SUBSCRIBER, "overtook"], how="left")


def _gaps(numbers: pl.LazyFrame) -> pl.LazyFrame:
    missing = pl.col("next_sequence") - pl.col("sequence") - 1
    known = pl.col("next_place") - pl.col("place") - 1
    dead, waiting = pl.col("dead") - pl.col("next_dead"), pl.col("waiting") - pl.col("next_waiting")
    return numbers.filter(missing > 0).select(
        *SUBSCRIBER, day="next_first_day", finding=pl.lit("gap"), first_sequence=pl.col("sequence") + 1,
        last_sequence=pl.col("next_sequence") - 1, number=missing, dead=dead, waiting=waiting,
        elsewhere=known - dead - waiting, nowhere=missing - known, before_event_id="first_id", before_at="first_at",
        after_event_id="next_first_id", after_at="next_first_at",
    )  # fmt: skip


def _finding(rows: pl.LazyFrame, finding: str, before: str, after: str) -> pl.LazyFrame:
    return rows.select(
        *SUBSCRIBER, day=f"{after}_day", finding=pl.lit(finding), first_sequence="sequence", last_sequence="sequence",
        number=pl.lit(1, dtype=pl.Int64), before_event_id=f"{before}_id", before_at=f"{before}_at",
        after_event_id=f"{after}_id", after_at=f"{after}_at",
    )  # fmt: skip


def _reordered(numbers: pl.LazyFrame) -> pl.LazyFrame:
    return _finding(numbers.filter(pl.col("overtook_at") < pl.col("first_at")), "reordered", "overtook", "first")


def _numbers_twice(numbers: pl.LazyFrame) -> pl.LazyFrame:
    twice = numbers.filter((pl.col("copies") > 1) & (pl.col("first_id") != pl.col("again_id")))
    return _finding(twice, "duplicate", "first", "again")


def _messages_twice(came: pl.LazyFrame) -> pl.LazyFrame:
    messages = came.filter(pl.col("message_id").is_not_null()).group_by(*SUBSCRIBER, "message_id").agg(
        pl.min("sequence").alias("lowest"), pl.max("sequence").alias("highest")
    )  # fmt: skip
    twice = messages.filter(pl.col("lowest") != pl.col("highest")).join(came, on=[*SUBSCRIBER, "message_id"])
    both = twice.group_by(*SUBSCRIBER, "message_id", sequence="highest").agg(
        *(pl.col(name).sort_by("at", "id").first().alias(f"first_{name}") for name in ("at", "id", "day")),
        *(pl.col(name).sort_by("at", "id").last().alias(f"again_{name}") for name in ("at", "id", "day")),
    )
    return _finding(both, "duplicate", "first", "again")


def _seen(came: pl.LazyFrame) -> pl.LazyFrame:
    in_order = ("sequence", "at", "id")
    seen = came.filter(pl.col("queue").is_not_null()).group_by("day", *SUBSCRIBER).agg(
        first_sequence=pl.min("sequence"),
        last_sequence=pl.max("sequence"),
        number=pl.len().cast(pl.Int64),
        before_event_id=pl.col("id").sort_by(in_order).first(),
        before_at=pl.col("at").sort_by(in_order).first(),
        after_event_id=pl.col("id").sort_by(in_order).last(),
        after_at=pl.col("at").sort_by(in_order).last(),
    )  # fmt: skip
    return seen.with_columns(finding=pl.lit("seen"))


REPORTS = {
    "rendezvous_daily": _rendezvous,
    "split_daily": _splitting,
    "topic_hourly": _topics,
    "delivery_hourly": _deliveries,
    "order_audit": _order,
}


if __name__ == "__main__":
    main(*sys.argv[1:])
