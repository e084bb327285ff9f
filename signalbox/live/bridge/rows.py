"""Rows of the table `logs` of an Arvados cluster (services/api/db/structure.sql, public.logs)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class LogRow:
    """A row; an absent text is empty, and times are in UTC.

    `requester_uuid` is the owner of the oldest container request of the row's container: Arvados' containers belong to
    the system user, and who may read a request may read its container (services/api/app/models/log.rb, readable_by).
    """

    id: int
    uuid: str = ""
    object_uuid: str = ""
    object_owner_uuid: str = ""
    event_type: str = ""
    event_at: datetime | None = None
    created_at: datetime | None = None
    properties: Mapping[str, object] = field(default_factory=dict)
    requester_uuid: str = ""


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
