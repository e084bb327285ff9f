"""The price of a run: its own calls, and what the stage did for it, at list prices."""

from collections.abc import Iterable, Mapping

from signalbox.verify.report import Answer

MILLION = 1_000_000
FIFO, WRITES, HTTP = "SQS FIFO request", "DynamoDB write unit", "HTTP API request"
# The price list has one item for SQS by the kind of a queue; a run is priced as if all were FIFO.
SQS = "SQS request"
# USD a million, for services that the price list of the reports does not have. Sources: the price pages of KMS, S3, API
# Gateway (WebSocket messages), Athena (10 MB, the least of a query, at 5 USD a TB), Glue (3 minutes of two workers at
# 0.44 USD an hour).
OTHER_PRICES = {
    "KMS request": 3.00,
    "S3 request": 5.00,
    "WebSocket message": 1.00,
    "Athena query": 50.0,
    "Glue run": 44_000.0,
}
# Calls of a service by the item that they are billed as; other services' calls are free.
ITEMS = {"sqs": (FIFO, "KMS request"), "dynamodb": (WRITES, "KMS request"), "s3": ("S3 request",), "http": (HTTP,)}
ITEMS |= {"websocket": ("WebSocket message",), "glue": ("Glue run",)}
ATHENA_QUERY = ("athena", "StartQueryExecution")
GLUE_RUN = ("glue", "StartJobRun")

Call = tuple[str, str]
"""A service and an operation."""
Fact = tuple[str, str]
"""A capability and an action, as in the price list's usages."""


def units(
    calls: Mapping[Call, int], facts: Mapping[Fact, int], usages: Iterable[tuple[str, str, str, float]]
) -> dict[str, float]:
    """Return the billed units by item; `usages` are capability, action, item and the most units of one action."""
    found: dict[str, float] = {}
    for (service, operation), count in calls.items():
        for item in _items(service, operation):
            found[item] = found.get(item, 0) + count
    for capability, what, item, most in usages:
        billed = FIFO if item == SQS else item
        if count := facts.get((capability, what), 0):
            found[billed] = found.get(billed, 0) + most * count
    return found


def _items(service: str, operation: str) -> tuple[str, ...]:
    if service == "athena":
        return ("Athena query",) if (service, operation) == ATHENA_QUERY else ()
    if service == "glue" and (service, operation) != GLUE_RUN:
        return ()
    return ITEMS.get(service, ())


def bill(found: Mapping[str, float], prices: Mapping[str, float]) -> dict[str, Answer]:
    """Return the price of billed units in USD: the total, and each item with its number."""
    usd = {item: count * {**OTHER_PRICES, **prices}[item] / MILLION for item, count in found.items()}
    items: dict[str, Answer] = {
        item: {"units": round(found[item], 1), "usd": round(usd[item], 6)} for item in sorted(found)
    }
    return {"usd": round(sum(usd.values()), 4), "items": items}
