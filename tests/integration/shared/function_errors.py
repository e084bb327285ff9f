"""The errors of a stage's functions that a failed test shows."""

import time
from collections.abc import Iterator
from typing import Any

from signalbox.clients.deployment import Deployment

MINUTES_SHOWN, SHOWN_EVENTS, SHOWN_CHARACTERS = 3, 20, 2_000
MARKS = ("Traceback", "ERROR", "Error: ", "timed out", "did not start", "process died")


def error_lines(deployment: Deployment) -> list[str]:
    """Return the newest log events with an error of a stage's functions, each after the name of its function."""
    logs = deployment.session().client("logs")
    groups = [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
    since = round((time.time() - 60 * MINUTES_SHOWN) * 1000)
    found = sorted((at, group, text) for group in groups for at, text in _errors(logs, group, since))
    return [f"{group.rpartition('/')[2]}: {text[:SHOWN_CHARACTERS]}" for _, group, text in found[-SHOWN_EVENTS:]]


def _errors(logs: Any, group: str, since: int) -> Iterator[tuple[int, str]]:
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group, startTime=since)
    for page in pages:
        for event in page["events"]:
            if any(mark in event["message"] for mark in MARKS):
                yield event["timestamp"], event["message"]
