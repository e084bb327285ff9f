"""The wiring of the function `overview`, made once for each function instance."""

from datetime import timedelta
from functools import cache

import boto3

from lambdas.live import wiring
from lambdas.shared import instance
from signalbox.activity.measures import Sources
from signalbox.activity.questions import options_of
from signalbox.activity.recent import RecentActivity
from signalbox.aws.activity.stage import StageActivity
from signalbox.aws.live.accounts import DynamoUserRights
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.aws.live.outbox import SqsOutboxes
from signalbox.aws.live.overview import NoPictures, OverviewTables, S3Pictures
from signalbox.aws.shared.table import DynamoTable
from signalbox.exchange.model.names import StageNames
from signalbox.live.procedures.overview import LoggedTopics, Pictures, StageOverview
from signalbox.live.procedures.overview_service import OverviewService

# CloudWatch has a value a minute; the local stage measures at each read, which is free.
KEPT, KEPT_LOCALLY = timedelta(minutes=1), timedelta(seconds=2)


@cache
def service() -> OverviewService:
    """Return the service that answers the calls."""
    settings, table, resource = instance.settings(), wiring.table(), boto3.resource("dynamodb")
    exchanges = resource.Table(settings.text("EXCHANGE_TABLE"))
    tables = OverviewTables(
        rendezvous=_rendezvous_table(),
        splits=resource.Table(settings.text("SPLIT_TABLE")) if settings.has("SPLIT_TABLE") else None,
        exchanges=exchanges,
    )
    return OverviewService(
        stage=StageOverview(LoggedTopics(DynamoTopicLog(table)), tables.parts(), _pictures(), _activity(tables)),
        rights=DynamoUserRights(table, exchanges),
        outboxes=SqsOutboxes(instance.sqs(), settings.text("LIVE_OUTBOX_URL")),
    )


def _rendezvous_table() -> DynamoTable | None:
    name = "RENDEZVOUS_TABLE"
    return DynamoTable(instance.dynamodb(), instance.settings().text(name)) if instance.settings().has(name) else None


def _pictures() -> Pictures:
    name = "HISTORY_BUCKET"
    settings = instance.settings()
    return S3Pictures(boto3.client("s3"), settings.text(name)) if settings.has(name) else NoPictures()


def _activity(tables: OverviewTables) -> RecentActivity:
    settings = instance.settings()
    name = settings.text("STAGE")
    activity = StageActivity(
        boto3.client("cloudwatch"),
        splits=tables.splits,
        exchanges=tables.exchanges,
        names=StageNames(name, settings.text("EXCHANGE_PREFIX")),
        sources=Sources.parse(settings.text("ACTIVITY_SOURCES")),
    )
    if instance.is_local():
        return RecentActivity(activity.read, KEPT_LOCALLY)
    return RecentActivity(activity.read, KEPT, options_of(name))
