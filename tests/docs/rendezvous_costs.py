"""Write the costs of rendezvous, by counted calls, into docs/rendezvous.md: `python -m tests.docs.rendezvous_costs`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from glue_jobs.transforms.prices import PRICES, PRICES_DATE, REGION
from signalbox.aws.rendezvous.offers import PAGE_SIZE, SOUGHT_PAGE_SIZE
from signalbox.rendezvous.model.pace import LONGEST_INTERVAL, SHORTEST_INTERVAL
from signalbox.rendezvous.rules.poll_service import SHORT_LOOK
from stacks.settings.config import Config
from tests.docs.costs import MINUTES, STANDING_PRICES
from tests.docs.markdown import with_section

PAGE = Path(__file__).parents[2] / "docs" / "rendezvous.md"
BEGIN, END = "<!-- costs: written by tests/docs/rendezvous_costs.py -->", "<!-- /costs -->"
SQS, WRITES, READS = "SQS standard request", "DynamoDB write unit", "DynamoDB read unit"
HTTP, RUNS, MEMORY, FIREHOSE = "HTTP API request", "Lambda request", "Lambda GB-millisecond", "Firehose kilobyte"
LOGS = "log kilobyte"
# A line of the API's access log, a metric in a function's log, and an event of the history; a test measures the event.
ACCESS_LOG, METRIC_LOG, EVENT_KILOBYTES = 0.33, 0.24, 0.4
# Firehose bills a record that has one event as this much.
RECORD_KILOBYTES = 5
# Counters and paces of a hundred collected events, in write units for each.
COLLECTED_WRITES = 0.05
# Claims that another poll has won, for each rendezvous: counted by a prototype at 10 polls a second.
LOST_CLAIMS = 0.25
# Writes of a rendezvous and SQS calls of all parties; tests count them.
RENDEZVOUS_WRITES, RENDEZVOUS_CALLS = 3, 8
# Read units with one offer a second, whose records have half a kilobyte: a poll reads those of 12 seconds.
POOL_READS, ANSWER_READS, PACE_READS = 1, 2, 1
# Estimated by the number of calls: 512 MB for 10 ms with a query, and 30 ms with four calls.
POLL_MEMORY, OFFER_MEMORY, ANSWER_MEMORY = 5, 15, 20


@dataclass(frozen=True, slots=True)
class Priced:
    """Something that rendezvous does, with its billed units."""

    what: str
    units: Mapping[str, float]

    def usd(self, *items: str) -> float:
        """Return the price of a million, of some items or of all."""
        return sum(number * _price(item) for item, number in self.units.items() if not items or item in items)


def _price(item: str) -> float:
    if item == LOGS:
        return STANDING_PRICES["CloudWatch Logs", "a GB"] / 1024**2 * 1_000_000
    return PRICES[item]


def _poll(what: str, *, pools: int, events: float = EVENT_KILOBYTES, writes: float = COLLECTED_WRITES) -> Priced:
    units = {HTTP: 1, RUNS: 1, MEMORY: POLL_MEMORY, READS: pools * POOL_READS}
    return Priced(what, units | {WRITES: writes, FIREHOSE: events, LOGS: ACCESS_LOG})


ANSWERED = Priced(
    "answered rendezvous over SQS",
    {
        SQS: RENDEZVOUS_CALLS,
        WRITES: RENDEZVOUS_WRITES + LOST_CLAIMS + 2 * COLLECTED_WRITES,
        READS: PACE_READS + 1.5 * POOL_READS + ANSWER_READS,
        HTTP: 2,
        RUNS: 3,
        MEMORY: POLL_MEMORY + OFFER_MEMORY + ANSWER_MEMORY,
        FIREHOSE: 4 * EVENT_KILOBYTES,
        LOGS: 2 * ACCESS_LOG + 2 * METRIC_LOG,
    },
)
UNMATCHED = _poll("unmatched poll of an unrestricted proxy", pools=2)
ROWS = (
    ANSWERED,
    _poll("unmatched poll of a restricted proxy", pools=1),
    UNMATCHED,
    _poll("the same, once in ten seconds or less", pools=2, events=RECORD_KILOBYTES, writes=1.1),
    Priced(
        "poll of a proxy that ignores `NextPoll`, not served",
        {HTTP: 1, RUNS: 1, MEMORY: 1, WRITES: COLLECTED_WRITES, FIREHOSE: EVENT_KILOBYTES, LOGS: ACCESS_LOG},
    ),
)
COLUMNS = {
    "SQS": (SQS,),
    "writes": (WRITES,),
    "reads": (READS,),
    "HTTP API": (HTTP,),
    "Lambda": (RUNS, MEMORY),
    "Firehose": (FIREHOSE,),
    "logs": (LOGS,),
}
PROXIES, OFFERS = (20_000, 200_000), (1, 50)
# To answer bursts: polls that are asleep cannot be woken.
POLLS_FOR_AN_OFFER = 5
RECORD_BYTES, READ_BYTES = 500, 4096
SECONDS_TO_ANSWER = 2  # after the offer was sent
# Of a run, with the time of its calls.
POLL_SECONDS, OFFER_SECONDS, ANSWER_SECONDS = 0.02, 0.1, 0.1
CONFIG = Config()
SCALE = (
    "With many proxies that follow `NextPoll`, five polls for each offer, and at least those of the default budget, "
    "calculated:"
)
SCALE_COLUMNS = (
    *("Proxies", "Offers a second", "Interval", "Polls a second", "Runs a second"),
    *("Writes a second of a pool", "Reads", "Executions", "USD a month", "First limit"),
)
BUDGETS = (10, 25, 50, 100)
WAITS = (
    "What `poll_budget_usd` pays for; half of the offers that all polls fit wait for less than the time in the third "
    "column, and 95 of 100 for less than that in the fourth:"
)


def section() -> str:
    """Return the tables in Markdown."""
    return "\n".join(
        (
            f"In USD for a million, at the list prices of {REGION} of {PRICES_DATE}, with one offer a second:",
            "",
            f"| | {' | '.join(COLUMNS)} | sum |",
            f"|---|{'---:|' * (len(COLUMNS) + 1)}",
            *(f"| {row.what} | {' | '.join(_cells(row))} | **{row.usd():.1f}** |" for row in ROWS),
            "",
            WAITS,
            "",
            "| USD a month | Polls a second | Median wait | 95th percentile |",
            "|---|---:|---:|---:|",
            *map(_budget, BUDGETS),
            "",
            SCALE,
            "",
            f"| {' | '.join(SCALE_COLUMNS)} |",
            f"|{'---:|' * 9}---|",
            *(_scale(proxies, offers) for proxies in PROXIES for offers in OFFERS),
            "",
        )
    )


def _scale(proxies: int, offers: int) -> str:
    """Return a row for proxies that follow `NextPoll`, and offers in equal parts for both pools."""
    target = max(POLLS_FOR_AN_OFFER * offers, BUDGETS[1] / UNMATCHED.usd() * 1_000_000 / (MINUTES * 60))
    interval = min(max(proxies / target, SHORTEST_INTERVAL.total_seconds()), LONGEST_INTERVAL.total_seconds())
    polls = proxies / interval
    records = min(SHORT_LOOK.total_seconds() * offers / 2, PAGE_SIZE)
    units = math.ceil(records * RECORD_BYTES / READ_BYTES) / 2
    # `answer` reads pages of the newest records until it finds its match.
    pages = max(math.ceil(offers / 2 * SECONDS_TO_ANSWER / SOUGHT_PAGE_SIZE), 1)
    used = {
        "writes of a pool": (offers / 2 * (RENDEZVOUS_WRITES + LOST_CLAIMS), 1000),
        "reads of a pool": (polls * units + offers * pages, 3000),
        "concurrency of `poll`": (polls * POLL_SECONDS, CONFIG.proxy_concurrency),
        "concurrency of `offer`": (offers * OFFER_SECONDS, CONFIG.offer_concurrency),
    }
    name, (number, limit) = max(used.items(), key=lambda item: item[1][0] / item[1][1])
    more_reads = Priced("", {READS: 2 * (units - POOL_READS) * polls + 2 * (pages - 1) * offers}).usd()
    usd = (offers * ANSWERED.usd() + polls * UNMATCHED.usd() + more_reads) * MINUTES * 60 / 1_000_000
    executions = polls * POLL_SECONDS + offers * (OFFER_SECONDS + ANSWER_SECONDS)
    (writes, _), (reads, _) = used["writes of a pool"], used["reads of a pool"]
    cells = (f"{proxies:,}", offers, f"{interval:,.0f} s", f"{polls:,.0f}", f"{polls + 2 * offers:,.0f}")
    cells += (f"{writes:,.1f}", f"{reads:,.0f}", f"{executions:,.1f}", f"{usd:,.0f}")
    return f"| {' | '.join(map(str, cells))} | {name}: {100 * number / limit:.0f} % |"


def _cells(row: Priced) -> list[str]:
    return [f"{row.usd(*items):.2f}" for items in COLUMNS.values()]


def _budget(usd: int) -> str:
    """Return a row: the waits for the first of many independent polls are distributed exponentially."""
    polls = usd / UNMATCHED.usd() * 1_000_000 / (MINUTES * 60)
    return f"| {usd} | {polls:.1f} | {0.693 / polls:.2f} s | {3.0 / polls:.2f} s |"


def page(text: str) -> str:
    """Return the page with its tables updated."""
    return with_section(text, BEGIN, END, section())


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
