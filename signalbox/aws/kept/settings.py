"""The settings of kept queues in the table `Splits`.

The command writes them with the caller's own credentials: only a caller who may write the table can keep messages or
name their readers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from signalbox.aws.shared.dynamodb import DynamoTable, milliseconds, moment
from signalbox.aws.shared.expressions import Delete, Item, Put, attr
from signalbox.forms import Form, Forms
from signalbox.kept.settings import KeepSetting
from signalbox.queues import QueueName

KIND = "kept"
SECONDS = Form(lambda duration: int(duration.total_seconds()), lambda seconds: timedelta(seconds=int(seconds)))
SETTING = Forms({datetime: Form(milliseconds, moment), timedelta: SECONDS}).record(
    KeepSetting, names={"keep_for": "keep_seconds"}, sparse=["keep_for", "declared"]
)


@dataclass(frozen=True, slots=True)
class DynamoKeepSettings:
    """`KeepSettings` over the table `Splits`: an item for each queue that is kept, or was until a moment ago."""

    table: DynamoTable

    def find(self, queue: QueueName) -> KeepSetting | None:
        """Return the setting of a queue, or None."""
        item = self.table.get(_key(queue))
        return SETTING.read(item) if item else None

    def every(self) -> Sequence[KeepSetting]:
        """Return all settings, eventually consistent."""
        return list(map(SETTING.read, self.table.of_kind(KIND)))

    def put(self, setting: KeepSetting) -> None:
        """Store a setting, replacing an older one."""
        self.table.write(Put(_key(setting.queue) | {"kind": KIND} | SETTING.write(setting)))

    def forget(self, setting: KeepSetting) -> None:
        """Delete a removed setting, unless it was set again."""
        self.table.write(Delete(_key(setting.queue), attr("set_at").eq(milliseconds(setting.set_at))))


def _key(queue: QueueName) -> Item:
    return {"pk": f"kept#{queue}", "sk": "kept"}
