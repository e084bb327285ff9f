"""The logs of the local stage: the emulator's, and those of its functions."""

import time
from collections.abc import Iterator

import boto3

from signalbox.errors import RejectedError
from signalbox.local.emulator import lifecycle
from signalbox.local.stage_folder import StageFolder

POLL_SECONDS = 0.5


def emulator_lines(stage_folder: StageFolder, *, follow: bool) -> Iterator[str]:
    """Yield the lines of the emulator's log; with `follow`, also new lines until interrupted."""
    try:
        with stage_folder.log.open(errors="replace") as log:
            while True:
                for line in log:
                    yield line.rstrip("\n")
                if not follow:
                    return
                time.sleep(POLL_SECONDS)
    except FileNotFoundError as error:
        raise RejectedError("the emulator has no log yet: start it with `make up`") from error


def function_lines(stage_folder: StageFolder, function: str, *, follow: bool) -> Iterator[str]:
    """Yield the log lines of the functions whose names contain `function`, ordered by time."""
    running = lifecycle.running(stage_folder)
    if running is None:
        raise RejectedError("the stage is not running: start it with `make up`")
    session = running.session()
    groups = _log_groups(session, function)
    since = 0
    while True:
        events = [event for group in groups for event in _events(session, group, since)]
        for event in sorted(events, key=lambda event: event[0]):
            since = max(since, event[0] + 1)
            yield event[1]
        if not follow:
            return
        time.sleep(POLL_SECONDS)


def _log_groups(session: boto3.Session, function: str) -> list[str]:
    functions = session.client("lambda").get_paginator("list_functions").paginate()
    found = {
        entry["FunctionName"]: entry.get("LoggingConfig", {}).get("LogGroup", f"/aws/lambda/{entry['FunctionName']}")
        for page in functions
        for entry in page["Functions"]
    }
    groups = sorted({group for name, group in found.items() if function.lower() in name.lower()})
    if not groups:
        raise RejectedError(f"no function's name contains {function!r}; the functions are: {', '.join(sorted(found))}")
    return groups


def _events(session: boto3.Session, group: str, since: int) -> Iterator[tuple[int, str]]:
    pages = session.client("logs").get_paginator("filter_log_events")
    for page in pages.paginate(logGroupName=group, startTime=since):
        for event in page["events"]:
            yield event["timestamp"], event["message"].rstrip("\n")
