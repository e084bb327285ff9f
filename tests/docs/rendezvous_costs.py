"""Print the costs and the limits of rendezvous, by counted calls, and write them into docs/rendezvous.md.

Run `python -m tests.docs.rendezvous_costs`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from signalbox.aws.rendezvous.offers import PAGE_SIZE
from signalbox.history.prices import PRICES, PRICES_DATE, REGION
from signalbox.rendezvous.model.pace import LONGEST_INTERVAL, SHORTEST_INTERVAL
from signalbox.rendezvous.model.states import BUSY_RECORDS
from signalbox.rendezvous.rules.poll_service import SHORT_LOOK
from stacks.rendezvous.construct import ANSWERS
from stacks.settings.config import Config
from stacks.shared.http_api import CALLS_PER_SECOND
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
# Claims that another poll has won, for each rendezvous: counted by a prototype at 30 polls a second.
LOST_CLAIMS = 0.5
# Writes of a rendezvous and SQS calls of all parties; tests count them.
RENDEZVOUS_WRITES, RENDEZVOUS_CALLS = 3, 8
# Read units with one offer a second, whose records have half a kilobyte: a poll reads those of 12 seconds, and an
# answer the newest ones of one pool, or of the other one, too.
POOL_READS, ANSWER_READS, PACE_READS = 1, 1.5, 0.5
# Estimated by the number of calls: 512 MB for 10 ms with a query, and 30 ms with four calls.
POLL_MEMORY, OFFER_MEMORY, ANSWER_MEMORY = 5, 15, 20


@dataclass(frozen=True, slots=True)
class Priced:
    """Something that rendezvous does, with its billed units; `requests` are those of strangers."""

    what: str
    units: Mapping[str, float]
    requests: int = 0

    def usd(self, *items: str) -> float:
        """Return the price of a million by function URLs, of some items or of all."""
        return sum(number * _price(item) for item, number in self.units.items() if not items or item in items)

    def usd_by(self, door: str) -> float:
        """Return the price of a million by a door."""
        return self.usd() + self.requests * REQUEST_PRICES[door]


def _price(item: str) -> float:
    if item == LOGS:
        return STANDING_PRICES["CloudWatch Logs", "a GB"] / 1024**2 * 1_000_000
    return PRICES[item]


# Lambda bills no request to a function URL, apart from the run.
REQUEST_PRICES = {"url": 0.0, "api": _price(HTTP) + ACCESS_LOG * _price(LOGS)}


def _poll(what: str, *, pools: int, events: float = EVENT_KILOBYTES, writes: float = COLLECTED_WRITES) -> Priced:
    units = {RUNS: 1, MEMORY: POLL_MEMORY, READS: pools * POOL_READS}
    return Priced(what, units | {WRITES: writes, FIREHOSE: events}, requests=1)


ANSWERED = Priced(
    "answered rendezvous over SQS",
    {
        SQS: RENDEZVOUS_CALLS,
        WRITES: RENDEZVOUS_WRITES + LOST_CLAIMS + 2 * COLLECTED_WRITES,
        READS: PACE_READS + 1.5 * POOL_READS + ANSWER_READS,
        RUNS: 3,
        MEMORY: POLL_MEMORY + OFFER_MEMORY + ANSWER_MEMORY,
        FIREHOSE: 4 * EVENT_KILOBYTES,
        LOGS: 2 * METRIC_LOG,
    },
    requests=2,
)
UNMATCHED = _poll("unmatched poll of an unrestricted proxy", pools=2)
UNSERVED = Priced(
    "poll of a proxy that ignores `NextPoll`, not served",
    {RUNS: 1, MEMORY: 1, WRITES: COLLECTED_WRITES, FIREHOSE: EVENT_KILOBYTES},
    requests=1,
)
ROWS = (
    ANSWERED,
    _poll("unmatched poll of a restricted proxy", pools=1),
    UNMATCHED,
    _poll("the same, once in ten seconds or less", pools=2, events=RECORD_KILOBYTES, writes=1.1),
    UNSERVED,
)
COLUMNS = {
    "SQS": (SQS,),
    "writes": (WRITES,),
    "reads": (READS,),
    "Lambda": (RUNS, MEMORY),
    "Firehose": (FIREHOSE,),
    "logs": (LOGS,),
}
PROXIES, OFFERS = (20_000, 200_000), (1, 50)
# To answer bursts: polls that are asleep cannot be woken.
POLLS_FOR_AN_OFFER = 5
RECORD_BYTES, READ_BYTES = 500, 4096
# In a busy pool, a claim writes an item for its match, and the answer reads that item and the record.
MATCH_WRITES, MATCH_READS = 1, 2
# The functions' calls of AWS for a rendezvous, with DeleteQueue, and for an unmatched poll; tests count them.
CALLS, POLL_CALLS = 11, 2
DOORS = {"url": "URL", "api": "API"}
# A poll as HTTP and TLS carry it.
REQUEST_BYTES = 500
# Of a run, with the time of its calls.
POLL_SECONDS, OFFER_SECONDS, ANSWER_SECONDS = 0.02, 0.1, 0.1
CONFIG = Config()
SCALE = (
    "With many proxies that follow `NextPoll`, five polls for each offer, and at least those of the default budget, "
    "calculated:"
)
SCALE_COLUMNS = (
    *("Proxies", "Offers a second", "Door", "Interval", "Polls a second", "Runs a second", "AWS calls a second"),
    *("Writes a second of a pool", "Reads", "Executions", "USD a month", "First limit"),
)
BUDGETS = (10, 25, 50, 100)
WAITS = (
    "The polls that `poll_budget_usd` pays for: columns two to four with a function URL, the last three with the HTTP "
    "API. Of the offers that every proxy can serve, half wait for less than the median, and 95 of 100 for less than "
    "the percentile:"
)


def section() -> str:
    """Return the tables in Markdown."""
    return "\n".join(
        (
            f"In USD for a million, at the list prices of {REGION} of {PRICES_DATE}, with one offer a second:",
            "",
            f"| | {' | '.join(COLUMNS)} | sum by URL | by the HTTP API |",
            f"|---|{'---:|' * (len(COLUMNS) + 2)}",
            *(
                f"| {row.what} | {' | '.join(_cells(row))} | **{row.usd():.2f}** | {row.usd_by('api'):.2f} |"
                for row in ROWS
            ),
            "",
            _flood(),
            "",
            _refused_answers(),
            "",
            WAITS,
            "",
            "| USD a month | Polls a second | Median wait | 95th percentile | by the HTTP API | | |",
            "|---|---:|---:|---:|---:|---:|---:|",
            *map(_budget, BUDGETS),
            "",
            SCALE,
            "",
            f"| {' | '.join(SCALE_COLUMNS)} |",
            f"|{'---:|' * 11}---|",
            *(_scale(proxies, offers, door) for proxies in PROXIES for offers in OFFERS for door in REQUEST_PRICES),
            "",
        )
    )


def _flood() -> str:
    """Return the costs of a flood of polls that are not served, at the limits of the doors."""
    rates = {door: sum(limit for _, limit in _requests(0, 0, door).values()) for door in DOORS}
    url, api = (rates[door] * UNSERVED.usd_by(door) * 86_400 / 1_000_000 for door in DOORS)
    ignoring = [1000 * MINUTES * UNSERVED.usd_by(door) / 1_000_000 for door in DOORS]
    return (
        f"The default limit is {rates['url']} requests of proxies a second; Lambda and API Gateway refuse further ones "
        f"with status 429, free of charge. A flood of polls that are not served costs at most {url:.0f} USD a day by "
        f"URL, {api:.0f} by the HTTP API. Beyond the budget, a thousand proxies that poll once a minute, whatever "
        f"`NextPoll` says, cost {ignoring[0]:.0f} USD a month by URL, {ignoring[1]:.0f} by the HTTP API."
    )


def _refused_answers() -> str:
    """Return the polls a second that take from answers by URL."""
    ((_, limit),) = _requests(0, 0, "url").values()
    _, of_answers = _requests(0, 0, "api")["answers of the API"]
    return (
        "**By URL, such a flood takes from answers.** Both share the limit, since a proxy finds both paths under one "
        f"URL, and Lambda refuses requests before any code runs. No answer is refused below {limit} requests a second; "
        f"at {2 * limit:,} one of two is, at {10 * limit:,} nine of ten. {limit} polls are "
        f"{limit * REQUEST_BYTES * 8 / 1_000_000:.0f} Mbit a second, from one address or many. A refused answer costs "
        "its client `match_patience_seconds`; then another proxy gets the offer. `proxy_concurrency` raises the limit, "
        f"and the costs in proportion. By the HTTP API, {of_answers} answers a second have a limit of their own, which "
        "no poll takes."
    )


def _scale(proxies: int, offers: int, door: str) -> str:
    """Return a row for proxies that follow `NextPoll`, and offers in equal parts for both pools."""
    target = max(POLLS_FOR_AN_OFFER * offers, _paid(CONFIG.poll_budget_usd, door))
    interval = min(max(proxies / target, SHORTEST_INTERVAL.total_seconds()), LONGEST_INTERVAL.total_seconds())
    polls = proxies / interval
    records = min(SHORT_LOOK.total_seconds() * offers / 2, PAGE_SIZE)
    units = math.ceil(records * RECORD_BYTES / READ_BYTES) / 2
    of_busy = offers if offers / 2 * CONFIG.offer_patience_seconds > BUSY_RECORDS else 0
    used = {
        "writes of a pool": (offers / 2 * (RENDEZVOUS_WRITES + LOST_CLAIMS), 1000),
        "reads of a pool": (polls * units + offers + of_busy / 2, 3000),
        "concurrency of `proxies`": (polls * POLL_SECONDS + offers * ANSWER_SECONDS, CONFIG.proxy_concurrency),
        "concurrency of `offer`": (offers * OFFER_SECONDS, CONFIG.offer_concurrency),
        **_requests(polls, offers, door),
    }
    name, (number, limit) = max(used.items(), key=lambda item: item[1][0] / item[1][1])
    more_reads = 2 * (units - POOL_READS) * polls + MATCH_READS * of_busy
    more = Priced("", {READS: more_reads, WRITES: MATCH_WRITES * of_busy}).usd()
    billed = offers * ANSWERED.usd_by(door) + max(polls - offers, 0) * UNMATCHED.usd_by(door) + more
    usd = billed * MINUTES * 60 / 1_000_000
    executions = polls * POLL_SECONDS + offers * (OFFER_SECONDS + ANSWER_SECONDS)
    (writes, _), (reads, _) = used["writes of a pool"], used["reads of a pool"]
    calls = offers * CALLS + (MATCH_WRITES + MATCH_READS) * of_busy + max(polls - offers, 0) * POLL_CALLS
    cells = (f"{proxies:,}", offers, DOORS[door], f"{interval:,.0f} s", f"{polls:,.0f}", f"{polls + 2 * offers:,.0f}")
    cells += (f"{calls:,.0f}", f"{writes:,.1f}", f"{reads:,.0f}", f"{executions:,.1f}", f"{usd:,.0f}")
    return f"| {' | '.join(map(str, cells))} | {name}: {100 * number / limit:.0f} % |"


def _requests(polls: float, offers: int, door: str) -> Mapping[str, tuple[float, int]]:
    """Return the used requests a second of a door with their limits."""
    accepted = CONFIG.proxy_concurrency * CALLS_PER_SECOND
    if door == "url":
        return {"requests of the URL": (polls + offers, accepted)}
    answers = accepted // ANSWERS
    return {"polls of the API": (polls, accepted - answers), "answers of the API": (offers, answers)}


def _cells(row: Priced) -> list[str]:
    return [f"{row.usd(*items):.2f}" for items in COLUMNS.values()]


def _budget(usd: int) -> str:
    """Return a row: the waits for the first of many independent polls are distributed exponentially."""
    rates = (_paid(usd, door) for door in REQUEST_PRICES)
    cells = (f"{polls:.1f} | {0.693 / polls:.2f} s | {3.0 / polls:.2f} s" for polls in rates)
    return f"| {usd} | {' | '.join(cells)} |"


def _paid(usd: int, door: str) -> float:
    """Return the polls a second that an amount of a month pays for."""
    return usd / UNMATCHED.usd_by(door) * 1_000_000 / (MINUTES * 60)


def page(text: str) -> str:
    """Return the page with its tables updated."""
    return with_section(text, BEGIN, END, section())


if __name__ == "__main__":
    print(section())
    PAGE.write_text(page(PAGE.read_text()))
