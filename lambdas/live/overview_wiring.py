"""The wiring of the function `overview`, made once for each function instance."""

import time
from datetime import timedelta
from functools import cache
from threading import Lock

from lambdas.live import wiring
from lambdas.shared import instance
from lambdas.shared.threads import inner_map
from signalbox.activity.measures import Sources
from signalbox.activity.questions import options_of
from signalbox.activity.recent import RecentActivity
from signalbox.aws.activity.stage import StageActivity
from signalbox.aws.live.accounts import DynamoUserRights
from signalbox.aws.live.outbox import SqsOutboxes
from signalbox.aws.live.overview import DynamoTopics, NoPictures, OverviewTables, S3Pictures
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.exchange.model.names import StageNames
from signalbox.live.log.read_limits import InstanceReads
from signalbox.live.procedures.overview import Pictures, StageOverview
from signalbox.live.procedures.overview_service import OverviewService

# CloudWatch has a value a minute; the local stage measures at each read, which is free.
KEPT, KEPT_LOCALLY = timedelta(minutes=1), timedelta(seconds=2)


@cache
def service() -> OverviewService:
    """Return the service that answers the calls."""
    settings, table, exchanges = instance.settings(), wiring.table(), instance.table("EXCHANGE_TABLE")
    tables = OverviewTables(_table("RENDEZVOUS_TABLE"), _table("SPLIT_TABLE"), exchanges, inner_map)
    return OverviewService(
        stage=StageOverview(DynamoTopics(table), tables.parts(), _pictures(), _activity(tables)),
        rights=DynamoUserRights(table, exchanges),
        outboxes=SqsOutboxes(instance.sqs(), settings.text("LIVE_OUTBOX_URL")),
        reads=InstanceReads(time.monotonic, Lock()),
        is_late=instance.is_late,
    )


def _table(variable: str) -> DynamoTable | None:
    return instance.table(variable) if instance.settings().has(variable) else None


def _pictures() -> Pictures:
    name, settings = "HISTORY_BUCKET", instance.settings()
    return S3Pictures(instance.aws_client("s3"), settings.text(name)) if settings.has(name) else NoPictures()


def _activity(tables: OverviewTables) -> RecentActivity:
    settings = instance.settings()
    name = settings.text("STAGE")
    activity = StageActivity(
        instance.aws_client("cloudwatch"),
        splits=tables.splits,
        exchanges=tables.exchanges,
        names=StageNames(name, settings.text("EXCHANGE_PREFIX")),
        sources=Sources.parse(settings.text("ACTIVITY_SOURCES")),
    )
    if instance.is_local():
        return RecentActivity(activity.read, KEPT_LOCALLY)
    return RecentActivity(activity.read, KEPT, options_of(name))
