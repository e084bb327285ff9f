"""The wiring of the function `overview`, made once for each function instance."""

from functools import cache

import boto3

from lambdas.live import wiring
from lambdas.shared import instance
from signalbox.aws.live.accounts import DynamoUserRights
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.aws.live.outbox import SqsOutboxes
from signalbox.aws.live.overview import OverviewTables, S3Pictures
from signalbox.aws.shared.table import DynamoTable
from signalbox.live.procedures.logged_topics import LoggedTopics
from signalbox.live.procedures.overview import StageOverview
from signalbox.live.procedures.overview_service import OverviewService


@cache
def service() -> OverviewService:
    """Return the service that answers the calls."""
    settings, table, resource = instance.settings(), wiring.table(), boto3.resource("dynamodb")
    exchanges = resource.Table(settings.text("EXCHANGE_TABLE"))
    tables = OverviewTables(
        rendezvous=DynamoTable(instance.dynamodb(), settings.text("RENDEZVOUS_TABLE")),
        splits=resource.Table(settings.text("SPLIT_TABLE")),
        exchanges=exchanges,
    )
    pictures = S3Pictures(boto3.client("s3"), settings.text("HISTORY_BUCKET"))
    return OverviewService(
        stage=StageOverview(LoggedTopics(DynamoTopicLog(table)), tables.parts(), pictures),
        rights=DynamoUserRights(table, exchanges),
        outboxes=SqsOutboxes(instance.sqs(), settings.text("LIVE_OUTBOX_URL")),
    )
