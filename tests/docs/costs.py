"""Write the costs of an idle stage and the list of prices into docs/operations.md: `python -m tests.docs.costs`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from signalbox.history.prices import PRICES, PRICES_DATE, REGION
from stacks.settings.choices import CAPABILITIES
from tests.docs.markdown import with_section
from tests.infrastructure.templates import Resource, Templates, templates

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
BEGIN, END = "<!-- costs: written by tests/docs/costs.py -->", "<!-- /costs -->"
MINUTES = 30 * 24 * 60  # of a month
# Lambda's five pollers of a queue each wait 20 s for messages.
RECEIVES = 15 * MINUTES
# A scheduled run that finds nothing to do, and the lines that Lambda logs about it.
RUN_MILLISECONDS, RUN_LOG_KILOBYTES = 100, 1
# The smallest size of a job, and how long it runs when there is little history.
WORKERS, JOB_MINUTES = 2, (1, 2)
# USD for one unit.
STANDING_PRICES = {
    ("KMS key", "a month"): 1.00,
    ("CloudWatch alarm", "a month"): 0.10,
    ("CloudWatch dashboard", "a month"): 3.00,
    ("CloudWatch metric", "a month"): 0.30,
    ("CloudWatch Logs", "a GB"): 0.50,
    ("Glue DPU", "an hour"): 0.44,
    ("Glue DPU on spare capacity", "an hour"): 0.29,
}
# The page of each service's prices at aws.amazon.com, by the beginning of its items' names.
PRICE_PAGES = {
    "SQS": "sqs",
    "Lambda": "lambda",
    "DynamoDB": "dynamodb",
    "HTTP API": "api-gateway",
    "WebSocket": "api-gateway",
    "Firehose": "firehose",
    "Scheduler": "eventbridge",
    "X-Ray": "xray",
    "KMS": "kms",
    "Config": "config",
    "CloudWatch": "cloudwatch",
    "Glue": "glue",
}

# Stages whose size and price are on the page, with the most resources and USD a month that they may have.
LIMITS = (
    ("rendezvous", 60, 3),
    ("splitting", 40, 2),
    ("exchange", 42, 2),
    ("exchange,live", 85, 4.5),
    ("history", 50, 3),
    (",".join(CAPABILITIES), 285, 7),
)
WATCHING = ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::Dashboard", "AWS::Logs::MetricFilter")


@dataclass(frozen=True, slots=True)
class Row:
    """An item of an idle stage with its cost a month, as lower and upper bound, and how to make it zero."""

    item: str
    least: float
    most: float
    zero: str


def section() -> str:
    """Return the tables in Markdown."""
    rows = list(_rows(templates()))
    least, most = price(templates())
    found = f"An idle stage costs {least:.0f} to {most:.0f} USD a month at the list prices of {REGION}"
    return "\n".join(
        (
            f"{found} of {PRICES_DATE}, without free tiers; look them up before you rely on them:",
            "",
            "| Item | USD a month | Zero with |",
            "|---|---|---|",
            *(f"| {row.item} | {_range(row.least, row.most)} | {row.zero} |" for row in rows),
            "",
            "The size and the price of a stage with some of the [capabilities](#capabilities):",
            "",
            "| `capabilities` | Resources of both stacks | USD a month | without dashboard and alarms |",
            "|---|---|---|---|",
            *(_part(capabilities) for capabilities, *_ in LIMITS),
            "",
            f"The list prices of {REGION}, as of {PRICES_DATE}, with which `cost_daily` is calculated too:",
            "",
            "| Item | USD | for | Source |",
            "|---|---|---|---|",
            *(f"| {name} | {price:,} | a million | {_page(name)} |" for name, price in PRICES.items()),
            *(f"| {name} | {price} | {unit} | {_page(name)} |" for (name, unit), price in STANDING_PRICES.items()),
            "",
        )
    )


def _part(capabilities: str) -> str:
    stage = stage_of(capabilities)
    prices = (_range(*price(found)) for found in (stage, unwatched(stage)))
    return f"| {capabilities.replace(',', ', ')} | {size(stage)} | {' | '.join(prices)} |"


def stage_of(capabilities: str) -> Templates:
    """Return a stage with these capabilities."""
    return templates() if capabilities == ",".join(CAPABILITIES) else templates(capabilities=capabilities)


def unwatched(stage: Templates) -> Templates:
    """Return a stage as it is with `alarms=false` and `dashboard=false`."""
    resources = {name: one for name, one in stage.stage["Resources"].items() if one["Type"] not in WATCHING}
    return Templates(stage.state, {**stage.stage, "Resources": resources})


def size(stage: Templates) -> int:
    """Return the number of resources of both stacks."""
    return len(stage.state["Resources"]) + len(stage.stage["Resources"])


def price(stage: Templates) -> tuple[float, float]:
    """Return the price of an idle month, as lower and upper bound."""
    rows = list(_rows(stage))
    return sum(row.least for row in rows), sum(row.most for row in rows)


def _rows(stage: Templates) -> Iterator[Row]:
    for kind, name_of_price, name, zero in (
        ("AWS::KMS::Key", "KMS key", "KMS key", "`destroy --everything`; in a CDK app, `encryption_key`"),
        ("AWS::CloudWatch::Alarm", "CloudWatch alarm", "alarms", "`alarms=false`"),
        (
            *("AWS::CloudWatch::Dashboard", "CloudWatch dashboard"),
            *("dashboard, unless it is one of the first three", "`dashboard=false`"),
        ),
    ):
        count = len(stage.every(kind))
        yield _row(f"{count} {name}", count * STANDING_PRICES[name_of_price, "a month"], zero)
    yield _polling(stage)
    yield from _scheduled_runs(stage)
    yield from _jobs(stage)


def _polling(stage: Templates) -> Row:
    queues = stage.every("AWS::SQS::Queue")
    polled = [
        stage.text(mapping["Properties"]["EventSourceArn"])
        for mapping in stage.every("AWS::Lambda::EventSourceMapping").values()
    ]
    ordered = sum(1 for name in polled if queues[name]["Properties"].get("FifoQueue"))
    cost = (len(polled) - ordered) * RECEIVES * _price("SQS standard request")
    cost += ordered * RECEIVES * _price("SQS FIFO request")
    return _row(
        f"Lambda's polling of {len(polled)} queues ({len(polled) - ordered} standard, {ordered} FIFO), "
        f"{len(polled) * RECEIVES:,} receives",
        cost,
        "a stage without the capability; those of exchanges come with the first exchange",
    )


def _scheduled_runs(stage: Templates) -> Iterator[Row]:
    functions, runs, traced, megabytes = stage.every("AWS::Lambda::Function"), 0, 0, 0.0
    for schedule in stage.every("AWS::Scheduler::Schedule").values():
        target = stage.text(schedule["Properties"]["Target"]["Arn"])
        if target in functions:
            number = runs_of(schedule["Properties"]["ScheduleExpression"])
            runs += number
            traced += number if "TracingConfig" in functions[target]["Properties"] else 0
            megabytes += number * functions[target]["Properties"]["MemorySize"]
    memory = megabytes / 1024 * RUN_MILLISECONDS * _price("Lambda GB-millisecond")
    cost = runs * (_price("Scheduler invocation") + _price("Lambda request")) + memory
    yield _row(f"{runs:,} scheduled runs of functions, 0.1 s each", cost, "history alone")
    yield _row(
        "their X-Ray traces: one run a second is always traced", traced * _price("X-Ray trace"), "`traces=false`"
    )
    gigabytes = runs * RUN_LOG_KILOBYTES / 1024**2
    yield _row("their logs, 1 KB each", gigabytes * STANDING_PRICES["CloudWatch Logs", "a GB"], "as above")


def _jobs(stage: Templates) -> Iterator[Row]:
    jobs = {job["Properties"]["Name"]: job["Properties"] for job in stage.every("AWS::Glue::Job").values()}
    runs = {"FLEX": 0, "STANDARD": 0}
    for schedule in stage.every("AWS::Scheduler::Schedule").values():
        for name in _started(stage, schedule, jobs):
            runs[jobs[name].get("ExecutionClass", "STANDARD")] += runs_of(schedule["Properties"]["ScheduleExpression"])
    for kind, price, what in (
        ("FLEX", "Glue DPU on spare capacity", "daily runs of jobs on spare capacity"),
        ("STANDARD", "Glue DPU", "runs of jobs in shorter intervals"),
    ):
        price_a_minute = runs[kind] * WORKERS / 60 * STANDING_PRICES[price, "an hour"]
        least, most = (minutes * price_a_minute for minutes in JOB_MINUTES)
        yield Row(f"{runs[kind]:,} {what}, two workers for a minute or two each", least, most, "no history")


def _started(stage: Templates, schedule: Resource, jobs: dict[str, Resource]) -> Iterator[str]:
    """Yield the name of the job that a schedule starts."""
    text = stage.text(schedule["Properties"]["Target"]["Input"])
    resources = {f"{name}": job["Properties"]["Name"] for name, job in stage.every("AWS::Glue::Job").items()}
    for name, job_name in resources.items():
        if f'"JobName":"{name}"' in text or f'"JobName":"{job_name}"' in text:
            yield job_name


def runs_of(expression: str) -> int:
    """Return the runs a month of a rate in minutes or hours, or of a cron expression with minute and hour."""
    if rate := re.fullmatch(r"rate\((\d+) (minute|hour)s?\)", expression):
        return MINUTES // (int(rate[1]) * {"minute": 1, "hour": 60}[rate[2]])
    cron = re.fullmatch(r"cron\(\d+ (\d+|\*/\d+) \* \* \? \*\)", expression)
    assert cron, expression
    hours = 24 // int(cron[1][2:]) if cron[1].startswith("*/") else 1
    return 30 * hours


def _row(item: str, cost: float, zero: str) -> Row:
    return Row(item, cost, cost, zero)


def _range(least: float, most: float) -> str:
    return f"{least:.2f}" if least == most else f"{least:.2f} to {most:.2f}"


def _price(item: str) -> float:
    return PRICES[item] / 1_000_000


def _page(item: str) -> str:
    (name,) = [page for start, page in PRICE_PAGES.items() if item.startswith(start)]
    return f"[{name}](https://aws.amazon.com/{name}/pricing/)"


def page(text: str) -> str:
    """Return the page with its tables updated."""
    return with_section(text, BEGIN, END, section())


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
