"""Rows of the table `logs` of an Arvados cluster (services/api/db/structure.sql, public.logs)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

OLD, NEW = "old_attributes", "new_attributes"
# The tables of the kinds of objects that have states, and the columns of a state except times: short ones, none of
# which is hidden from a reader of the object.
_TRASH = ("is_trashed", "trash_at", "delete_at")
_RUN = ("exit_code", "progress", "cost", "started_at", "finished_at", "output", "log", "locked_by_uuid")
_OF_REQUEST = ("container_uuid", "requesting_container_uuid", "output_uuid", "log_uuid")
STATE_COLUMNS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "collection": ("collections", ("name", *_TRASH, "portable_data_hash", "version")),
    "container": ("containers", ("state", "priority", *_RUN)),
    "containerRequest": ("container_requests", ("name", "state", "priority", *_OF_REQUEST)),
    "group": ("groups", ("name", *_TRASH, "group_class", "frozen_by_uuid")),
    "link": ("links", ("name", "link_class", "tail_uuid", "head_uuid")),
    "user": ("users", ("is_active", "is_admin")),
    "workflow": ("workflows", ("name",)),
}


@dataclass(frozen=True, slots=True)
class RowContainer:
    """The present container of a row, or that of a row's container request.

    Containers belong to the system user, and who may read a request may read its container, so `owners` are those of
    its requests, or its own if there is none. It `is_wanted` if a request has a priority; the container's own changes
    without a row.
    """

    uuid: str
    state: str = ""
    is_wanted: bool = False
    owners: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ObjectRecord:
    """The present record of an object in the table of its kind: its owner, and the attributes of its state."""

    owner_uuid: str
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DatabaseRow:
    """A row of Arvados' logs; an absent text is empty, and times are in UTC.

    Each user may write rows about any object, so only `id`, `created_at`, `record` and `container`, which the cluster
    sets, can be trusted. `record` is None if the object does not exist any more, or has no state. `omitted_bytes` is
    the size of properties that were too large to be read.
    """

    id: int
    uuid: str = ""
    object_uuid: str = ""
    object_owner_uuid: str = ""
    event_type: str = ""
    event_at: datetime | None = None
    created_at: datetime | None = None
    properties: Mapping[str, object] = field(default_factory=dict)
    omitted_bytes: int = 0
    record: ObjectRecord | None = None
    container: RowContainer | None = None

    @property
    def old(self) -> Mapping[str, object]:
        """Return the attributes of the object before the change."""
        return _attributes(self.properties, OLD)

    @property
    def new(self) -> Mapping[str, object]:
        """Return the attributes of the object after the change."""
        return _attributes(self.properties, NEW)

    def has_changed(self, *names: str) -> bool:
        """Return whether the change concerns one of some attributes."""
        return any(self.old.get(name) != self.new.get(name) for name in names)


def _attributes(properties: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = properties.get(name)
    return found if isinstance(found, Mapping) else {}


@dataclass(frozen=True, slots=True)
class IdRange:
    """The row ids from `first` to `last`."""

    first: int
    last: int

    def __contains__(self, number: int) -> bool:
        return self.first <= number <= self.last

    def without(self, number: int) -> "tuple[IdRange, ...]":
        """Return the parts of the range that do not contain a number."""
        if number not in self:
            return (self,)
        parts = IdRange(self.first, number - 1), IdRange(number + 1, self.last)
        return tuple(part for part in parts if part.first <= part.last)
