"""The topics of realms and the parts of the stage overview in DynamoDB, and the pictures of reports in S3."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from heapq import merge
from itertools import groupby
from operator import itemgetter
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.exchange.counters import DynamoCounters
from signalbox.aws.exchange.exchanges import DynamoExchanges
from signalbox.aws.live.items import last_topic, retained_keys, topic_of, topic_sort_key, topics_partition
from signalbox.aws.live.stored_events import EVENT, TEXT, event_with_cost
from signalbox.aws.rendezvous.statistics import DynamoStatistics
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.shared.expressions import Item, attr
from signalbox.aws.splitting.splits import DynamoSplits
from signalbox.errors import UnavailableError
from signalbox.exchange.control.summary import CountedExchange
from signalbox.exchange.control.summary import summary as exchange_glance
from signalbox.exchange.model.records import ListedExchange
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.read_limits import TOPIC
from signalbox.live.procedures.overview import MayRead, OverviewPart, Picture, PictureName, Topic
from signalbox.parallel import ParallelMap, serial_map
from signalbox.rendezvous.reporting.statistics import DayStatistics
from signalbox.sarracenia.rights.names import ExchangeName
from signalbox.splitting.control.summary import summary as splits_summary

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

REPORTS = "reports/"
SUFFIX = ".svg"
RECENT = timedelta(minutes=5)
KEPT = timedelta(seconds=5)
TOPICS_AT_ONCE, RETAINED_AT_ONCE = 1_000, 50  # of a read; a retained event has 128 KB at most

Value = TypeVar("Value")


class OverviewUnavailable(UnavailableError):
    """Raised when AWS refuses a read for the overview or the reports; the text has AWS's error code."""


@dataclass(frozen=True, slots=True)
class DynamoTopics:
    """`Topics` with events in the log, now or earlier, and those with a retained event."""

    table: DynamoTable

    def behind(self, realm: ExchangeName, prefix: str, after: str) -> Iterator[tuple[Topic, int]]:
        """Yield the topics that begin with a prefix and follow `after`, as `Topics` does."""
        partitions = {topics_partition(realm): TOPICS_AT_ONCE}
        partitions |= {key["pk"]: RETAINED_AT_ONCE for key in retained_keys(realm, RoutingKey(prefix))}
        first, last = (topic_sort_key(RoutingKey(text)) for text in (max(prefix, after), last_topic(prefix)))
        if first > last:
            return
        place = attr("sk").between(first, last)
        found = (self.table.query(attr("pk").eq(one) & place, Limit=most) for one, most in partitions.items())
        for key, items in groupby(merge(*found, key=itemgetter("sk")), key=itemgetter("sk")):
            if not after or key > topic_sort_key(RoutingKey(after)):
                yield _topic(list(items))


def _topic(items: Sequence[Item]) -> tuple[Topic, int]:
    retained = [event_with_cost(item) for item in items if EVENT in item or TEXT in item]
    at = max((event.at for event, _ in retained), default=None)
    return Topic(topic_of(items[0]), at), TOPIC + sum(cost for _, cost in retained)


@dataclass(frozen=True, slots=True)
class OverviewTables:
    """The tables that the overview is read from; None for those of a capability that the stage does not have."""

    rendezvous: DynamoTable | None
    splits: DynamoTable | None
    exchanges: DynamoTable
    parallel_map: ParallelMap = serial_map

    def parts(self) -> Mapping[str, OverviewPart]:
        """Return the parts of the overview by their names."""
        parts = {"exchanges": OverviewPart(_translated(_ReadExchanges(self.exchanges, self.parallel_map).visible))}
        if self.rendezvous is not None:
            parts["rendezvous"] = OverviewPart(_translated(partial(_rendezvous, DynamoStatistics(self.rendezvous))))
        if self.splits is not None:
            parts["splits"] = OverviewPart(
                _translated(partial(_splits, DynamoSplits(self.splits))), for_administrators=True
            )
        return parts


@dataclass(slots=True)
class _ReadExchanges:
    """The exchanges with their counters, which are read for all callers together and kept for some seconds."""

    table: DynamoTable
    parallel_map: ParallelMap
    _exclusive: Lock = field(default_factory=Lock)
    _read: tuple[datetime, Mapping[ExchangeName, object]] | None = None

    def visible(self, now: datetime, may_read: MayRead) -> object:
        """Return the counts of each exchange that a caller may read."""
        with self._exclusive:
            if self._read is None or now - self._read[0] >= KEPT:
                exchanges = DynamoExchanges(self.table).every()
                glances = self.parallel_map(partial(self._glance, now - RECENT), exchanges)
                self._read = now, dict(zip((one.name for one in exchanges), glances, strict=True))
            found = self._read[1]
        return [glance for name, glance in found.items() if may_read(name)]

    def _glance(self, since: datetime, exchange: ListedExchange) -> object:
        return exchange_glance(CountedExchange(exchange, DynamoCounters(self.table).since(exchange.resource, since)))


def _rendezvous(statistics: DynamoStatistics, now: datetime, _may_read: MayRead) -> object:
    day = now.date()
    return DayStatistics.from_counters(statistics.counters(day), day).summary()


def _splits(splits: DynamoSplits, _now: datetime, _may_read: MayRead) -> object:
    return splits_summary(splits.every())


class NoPictures:
    """`Pictures` of a stage without history."""

    def every(self) -> Sequence[Picture]:
        """Return no picture."""
        return ()

    def find(self, name: PictureName) -> None:
        """Return None."""
        del name


@dataclass(frozen=True, slots=True)
class S3Pictures:
    """`Pictures`: the objects below `reports/` whose names end with `.svg`."""

    client: "S3Client"
    bucket: str

    def every(self) -> Sequence[Picture]:
        """Return all pictures. Raises `OverviewUnavailable`."""
        return _translated(self._listed)()

    def find(self, name: PictureName) -> str | None:
        """Return a picture, or None. Raises `OverviewUnavailable`."""
        if not name.endswith(SUFFIX):
            return None  # the folder also has the reports' tables and texts
        return _translated(self._read)(name)

    def _listed(self) -> list[Picture]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=REPORTS)
        return [
            Picture(PictureName(found["Key"].removeprefix(REPORTS)), found["LastModified"])
            for page in pages
            for found in page.get("Contents", ())
            if found["Key"].endswith(SUFFIX)
        ]

    def _read(self, name: PictureName) -> str | None:
        try:
            return self.client.get_object(Bucket=self.bucket, Key=REPORTS + name)["Body"].read().decode()
        except self.client.exceptions.NoSuchKey:
            return None


def _translated(read: Callable[..., Value]) -> Callable[..., Value]:
    """Return a function that raises `OverviewUnavailable` instead of AWS's errors."""

    def reading(*given: object) -> Value:
        try:
            return read(*given)
        except ClientError as error:
            raise OverviewUnavailable(f"AWS answered {error.response['Error']['Code']}") from error
        except BotoCoreError as error:
            raise OverviewUnavailable(f"AWS cannot be reached: {type(error).__name__}") from error

    return reading
