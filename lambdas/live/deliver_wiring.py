"""Dependencies of the function `deliver`, created once per function instance."""

import os
from functools import cache

from lambdas.live import wiring
from lambdas.shared import instance
from lambdas.shared.threads import inner_map
from signalbox.aws.live.connection_snapshots import DynamoConnectionSnapshots
from signalbox.aws.live.connections import WITH_RETRIES, WITHOUT_RETRIES, ApiConnections
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.live.outbox.writer import OutboxWriter


@cache
def outbox_writer() -> OutboxWriter:
    """Return the writer of connections."""
    exchanges = instance.table("EXCHANGE_TABLE")
    return OutboxWriter(
        snapshots=DynamoConnectionSnapshots(wiring.table(), exchanges),
        log=DynamoTopicLog(wiring.table(), inner_map, is_late=instance.is_late),
        connections=connections(),
        now=instance.CLOCK.now,
        redelivered_after=instance.settings().seconds("LIVE_VISIBILITY_SECONDS"),
    )


@cache
def connections() -> ApiConnections:
    """Return the connections. On the local stage, their API is a path of the emulator's endpoint."""
    url = instance.settings().text("LIVE_CONNECTIONS_URL")
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "") + url if url.startswith("/") else url
    once, several_times = (
        instance.aws_client("apigatewaymanagementapi", endpoint_url=endpoint, config=config)
        for config in (WITHOUT_RETRIES, WITH_RETRIES)
    )
    return ApiConnections(once, several_times)
