"""A stub of Athena's query results: the events of a message."""

import requests

LABELS = '{"session":"ann-1","owner":"ann@desk","verdict":"tenant matches"}'
EVENTS = [
    ["routed:1:mirrord-1", "2026-11-20 10:00:00", "routed", "session", "meme-queue", "mirrord-1", LABELS],
    ["routed:1:mirrord-1", "2026-11-20 10:00:01", "routed", "session", "meme-queue", "mirrord-1", LABELS],
    ["routed:1:mirrord-0", "2026-11-20 10:00:02", "routed", "deployed", "meme-queue", "mirrord-0", "{}"],
]


def stub_query_results(events: list[list[str]]) -> None:
    """Set the events that the next query returns; moto has no query engine."""
    names = ["event_id", "occurred_at", "kind", "outcome", "source", "destination", "labels"]
    columns = [*names, "reason", "attempt", "latency_ms"]
    rows = [
        {"Data": [{"VarCharValue": value} for value in event] + [{}, {"VarCharValue": "1"}, {}]} for event in events
    ]
    header = {"Data": [{"VarCharValue": name} for name in columns]}
    results = [{"rows": [header, *rows], "column_info": []}]
    url = "http://motoapi.amazonaws.com/moto-api/static/athena/query-results"
    requests.post(url, json={"account_id": "123456789012", "region": "us-east-1", "results": results}, timeout=5)
