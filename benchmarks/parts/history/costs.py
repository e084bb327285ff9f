"""Workers and USD for a billion events a day on Glue, calculated from a measured run."""

import math
from dataclasses import dataclass

from benchmarks.shared.report import Table

EVENTS_A_DAY = 1_000_000_000
# A worker of type G.1X, and its list price in eu-central-1 and us-east-1 as of November 2026.
WORKER_PROCESSORS = 4
USD_AN_HOUR, FLEX_USD_AN_HOUR = 0.44, 0.29
# The time limit of the nightly run.
DEADLINE_HOURS = 1.0
# The processors of Glue's workers are hyperthreads, and a cluster waits for its last task and for S3.
SLOWER_BY = 2.0
EVENT_BYTES, PARQUET_BYTES = 320, 63
FIREHOSE_USD_A_GIGABYTE = 0.029 + 0.018  # input and conversion
S3_USD_A_GIGABYTE_MONTH = 0.0245


@dataclass(frozen=True, slots=True)
class Plan:
    """The resources and cost of a day of events."""

    processor_hours: float
    workers: int
    usd: float
    flex_usd: float
    firehose_usd: float
    stored_usd_a_month: float


def plan(processor_seconds_an_event: float) -> Plan:
    """Return the plan from the processor time of one event in compaction and all reports."""
    hours = processor_seconds_an_event * EVENTS_A_DAY / 3600 * SLOWER_BY
    # Plus the driver.
    workers = math.ceil(hours / WORKER_PROCESSORS / DEADLINE_HOURS) + 1
    gigabytes = EVENTS_A_DAY * EVENT_BYTES / 1e9
    return Plan(
        processor_hours=hours,
        workers=workers,
        usd=workers * DEADLINE_HOURS * USD_AN_HOUR,
        flex_usd=workers * DEADLINE_HOURS * FLEX_USD_AN_HOUR,
        firehose_usd=gigabytes * FIREHOSE_USD_A_GIGABYTE,
        stored_usd_a_month=EVENTS_A_DAY * PARQUET_BYTES / 1e9 * S3_USD_A_GIGABYTE_MONTH,
    )


def cost_table(made: Plan) -> Table:
    """Return the plan as a table."""
    rows = [
        ["processor hours of Glue", f"{made.processor_hours:.0f}"],
        [f"workers of type G.1X for {DEADLINE_HOURS:g} h", f"{made.workers}"],
        ["USD a day for jobs, Flex", f"{made.usd:.2f}, {made.flex_usd:.2f}"],
        ["USD a day for Firehose with conversion", f"{made.firehose_usd:.2f}"],
        ["USD a month to keep a day in S3", f"{made.stored_usd_a_month:.2f}"],
    ]
    note = (
        f"A calculation from the growth of processor time between the two largest runs, times {SLOWER_BY:g} for slower "
        "processors and waiting; at list prices as of November 2026. Never run at this size."
    )
    return Table("A billion events a day on Glue", ["what", "value"], rows, note)
