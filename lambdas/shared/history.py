"""How functions write history: made once for each function instance."""

import os
from collections.abc import Sequence
from functools import cache, partial

import boto3

from signalbox.aws.history.firehose import DeliveryStream, FirehoseHistory, Overflow
from signalbox.aws.shared.settings import Settings
from signalbox.aws.shared.telemetry import PowertoolsTelemetry
from signalbox.history.event import HistoryEvent


def record(events: Sequence[HistoryEvent]) -> None:
    """Write events to the lake, and count them."""
    if events:
        _lake().write(events)
        PowertoolsTelemetry().count(events)


@cache
def _lake() -> FirehoseHistory:
    return history(Settings(os.environ))


def history(settings: Settings) -> FirehoseHistory:
    """Return the lake, with the queue for what Firehose does not take."""
    # Hardly ever needed, and a client takes its time to make.
    sqs = cache(partial(boto3.client, "sqs"))
    overflow = Overflow(sqs, settings.text("HISTORY_OVERFLOW_URL"))
    return FirehoseHistory(stream(settings), overflow)


def stream(settings: Settings) -> DeliveryStream:
    """Return the delivery stream to the lake."""
    return DeliveryStream(boto3.client("firehose"), settings.text("HISTORY_STREAM"))
