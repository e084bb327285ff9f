"""The history writer of the functions, created once for each function instance."""

import os
from collections.abc import Sequence
from functools import cache, partial

import boto3

from signalbox.aws.history.firehose import DeliveryStream, FirehoseHistory, Overflow
from signalbox.aws.shared.settings import Settings
from signalbox.aws.shared.telemetry import PowertoolsTelemetry
from signalbox.history.event import HistoryEvent


def record(events: Sequence[HistoryEvent]) -> None:
    """Write events to the history, and count them as metrics."""
    if events:
        _history().write(events)
        PowertoolsTelemetry().count(events)


@cache
def _history() -> FirehoseHistory:
    return history(Settings(os.environ))


def history(settings: Settings) -> FirehoseHistory:
    """Return the writer to Firehose, with the overflow queue for refused events."""
    # Rarely needed, and creating a client is slow.
    sqs = cache(partial(boto3.client, "sqs"))
    overflow = Overflow(sqs, settings.text("HISTORY_OVERFLOW_URL"))
    return FirehoseHistory(stream(settings), overflow)


def stream(settings: Settings) -> DeliveryStream:
    """Return the delivery stream."""
    return DeliveryStream(boto3.client("firehose"), settings.text("HISTORY_STREAM"))
