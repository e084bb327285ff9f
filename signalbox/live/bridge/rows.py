"""Rows of the table `logs` of an Arvados cluster (services/api/db/structure.sql, public.logs)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

OLD, NEW = "old_attributes", "new_attributes"


@dataclass(frozen=True, slots=True)
class RowContainer:
    """The present container of a row, or that of a row's container request.

    Containers belong to the system user, and who may read a request may read its container, so `owners` are those of
    its requests. It `is_wanted` if one of them has a priority; that of the container itself changes without a row.
    """

    uuid: str
    state: str = ""
    is_wanted: bool = False
    owners: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DatabaseRow:
    """A row; an absent text is empty, and times are in UTC.

    `is_newest` if no row of the object has a later `event_at`: then its attributes are the object's present state.
    """

    id: int
    uuid: str = ""
    object_uuid: str = ""
    object_owner_uuid: str = ""
    event_type: str = ""
    event_at: datetime | None = None
    created_at: datetime | None = None
    properties: Mapping[str, object] = field(default_factory=dict)
    is_newest: bool = True
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
