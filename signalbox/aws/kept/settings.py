"""The settings of kept queues in the table `Splits`.

The command writes them with the caller's own credentials, so that only who may write the tables can have messages
kept or name their readers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Attr, Key

from signalbox.aws.shared.dynamodb import Item, every_item, milliseconds, moment, succeeds
from signalbox.kept.settings import KeepSetting
from signalbox.queues import QueueName

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

KIND = "kept"
BY_KIND_INDEX = "by_kind"
KEEP_SECONDS = "keep_seconds"


@dataclass(frozen=True, slots=True)
class DynamoKeepSettings:
    """`KeepSettings` over the table `Splits`: an item for each queue that is kept, or was until a moment ago."""

    table: "Table"

    def find(self, queue: QueueName) -> KeepSetting | None:
        """Return the setting of a queue, or None."""
        item = self.table.get_item(Key=_key(queue), ConsistentRead=True).get("Item")
        return _setting(item) if item else None

    def every(self) -> Sequence[KeepSetting]:
        """Return all settings, eventually consistent."""
        query = {"IndexName": BY_KIND_INDEX, "KeyConditionExpression": Key("kind").eq(KIND)}
        return [_setting(item) for item in every_item(self.table.query, query)]

    def put(self, setting: KeepSetting) -> None:
        """Store a setting, replacing an older one."""
        item = _key(setting.queue) | {
            "kind": KIND,
            "queue": setting.queue,
            "set_at": milliseconds(setting.set_at),
            "readers": dict(setting.readers),
        }
        if setting.declared is not None:
            item["declared"] = setting.declared
        if setting.keep_for is not None:
            item[KEEP_SECONDS] = int(setting.keep_for.total_seconds())
        self.table.put_item(Item=item)

    def forget(self, setting: KeepSetting) -> None:
        """Delete a removed setting, unless it was set again."""
        is_as_read = Attr("set_at").eq(milliseconds(setting.set_at))
        succeeds(lambda: self.table.delete_item(Key=_key(setting.queue), ConditionExpression=is_as_read))


def _key(queue: QueueName) -> Item:
    return {"pk": f"kept#{queue}", "sk": "kept"}


def _setting(item: Item) -> KeepSetting:
    return KeepSetting(
        queue=QueueName(item["queue"]),
        keep_for=timedelta(seconds=int(item[KEEP_SECONDS])) if KEEP_SECONDS in item else None,
        set_at=moment(item["set_at"]),
        readers=dict(item["readers"]),
        declared=item.get("declared"),
    )
