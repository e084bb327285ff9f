"""The settings of kept queues in the table `Splits`.

The command writes them with the caller's own credentials: only a caller who may write the table can keep messages or
name their readers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from signalbox.aws.shared.dynamodb import DynamoTable, milliseconds, moment
from signalbox.aws.shared.expressions import Delete, Item, Put, attr
from signalbox.kept.settings import KeepSetting
from signalbox.queues import QueueName

KIND = "kept"
KEEP_SECONDS = "keep_seconds"


@dataclass(frozen=True, slots=True)
class DynamoKeepSettings:
    """`KeepSettings` over the table `Splits`: an item for each queue that is kept, or was until a moment ago."""

    table: DynamoTable

    def find(self, queue: QueueName) -> KeepSetting | None:
        """Return the setting of a queue, or None."""
        item = self.table.get(_key(queue))
        return _setting(item) if item else None

    def every(self) -> Sequence[KeepSetting]:
        """Return all settings, eventually consistent."""
        return list(map(_setting, self.table.of_kind(KIND)))

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
        self.table.write(Put(item))

    def forget(self, setting: KeepSetting) -> None:
        """Delete a removed setting, unless it was set again."""
        self.table.write(Delete(_key(setting.queue), attr("set_at").eq(milliseconds(setting.set_at))))


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
