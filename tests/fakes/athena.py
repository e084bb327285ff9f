"""A stub of Athena in moto: a stage's workgroup, and the result of the next query, such as the events of a message."""

from collections.abc import Mapping, Sequence

import boto3
import requests

RESULTS = "http://motoapi.amazonaws.com/moto-api/static/athena/query-results"

LABELS = '{"session":"ann-1","owner":"ann@desk","verdict":"tenant matches"}'
EVENTS = [
    ["routed:1:mirrord-1", "2026-11-20 10:00:00", "routed", "session", "meme-queue", "mirrord-1", LABELS],
    ["routed:1:mirrord-1", "2026-11-20 10:00:01", "routed", "session", "meme-queue", "mirrord-1", LABELS],
    ["routed:1:mirrord-0", "2026-11-20 10:00:02", "routed", "deployed", "meme-queue", "mirrord-0", "{}"],
]


def stub_events(events: Sequence[Sequence[str]], *, database: str) -> None:
    """Set the events that the next query returns."""
    names = ["event_id", "occurred_at", "kind", "outcome", "source", "destination", "labels"]
    columns = [*names, "reason", "attempt", "latency_ms"]
    rows = [
        {"Data": [{"VarCharValue": value} for value in event] + [{}, {"VarCharValue": "1"}, {}]} for event in events
    ]
    header = {"Data": [{"VarCharValue": name} for name in columns]}
    stub_rows([header, *rows], database=database)


def stub_rows(rows: Sequence[Mapping[str, object]], *, database: str) -> None:
    """Set the rows that the next query in a database's workgroup returns; moto has no query engine."""
    athena = boto3.client("athena", region_name="us-east-1")
    if database not in {one["Name"] for one in athena.list_work_groups()["WorkGroups"]}:
        athena.create_work_group(Name=database)
    results = [{"rows": rows, "column_info": []}]
    requests.post(RESULTS, json={"account_id": "123456789012", "region": "us-east-1", "results": results}, timeout=5)
