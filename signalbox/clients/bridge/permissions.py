"""The permissions of an Arvados cluster as the groups of a realm: each user is in the groups that may be read now."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from signalbox.clients.bridge.postgres import connected, translated_errors

if TYPE_CHECKING:
    import psycopg

    from signalbox.clients.bridge.worker import Worker

# The group of a cluster's administrators, who may read everything there: Arvados has none of its own for them.
ADMINISTRATORS = "arvados-admins"
# Arvados computes this table in the transaction that changes a permission. A permission on a user counts for the
# user's objects if it is `traverse_owned`, and a trashed group is not readable from `trash_at` on, without a row.
READABLE = """
    SELECT users.uuid, users.is_active AND users.is_admin, array_agg(target_uuid) FILTER (WHERE target_uuid IS NOT NULL)
    FROM users LEFT JOIN materialized_permissions ON users.is_active AND NOT users.is_admin AND user_uuid = users.uuid
      AND perm_level >= 1 AND traverse_owned AND target_uuid <> users.uuid
      AND (target_uuid LIKE '_____-j7d0g-%' OR target_uuid LIKE '_____-tpzed-%')
      AND NOT EXISTS (SELECT 1 FROM trashed_groups
                      WHERE group_uuid = target_uuid AND trash_at <= (now() AT TIME ZONE 'UTC'))
    GROUP BY users.uuid, users.is_active, users.is_admin
"""
# Trash counts by time, and a row may be late.
CHECK_SECONDS = 30.0
MAXIMUM_GROUPS = 1_000  # of a user in a realm
USERS_PER_COMMAND = 20


@dataclass(slots=True)
class PostgresPermissions:
    """The permissions in PostgreSQL, on a connection of its own. Raises what `PostgresLogs` raises."""

    connection: "psycopg.Connection[tuple[Any, ...]]"

    @classmethod
    @contextmanager
    def connect(cls, dsn: str) -> Iterator[Self]:
        """Connect."""
        with connected(dsn) as connection:
            yield cls(connection)

    def groups_by_user(self) -> Mapping[str, frozenset[str]]:
        """Return for each user the projects, groups and users whose objects the user may read."""
        with translated_errors():
            rows = self.connection.execute(READABLE).fetchall()
        return {user: frozenset([ADMINISTRATORS] if is_admin else groups or ()) for user, is_admin, groups in rows}


@dataclass(slots=True)
class PermissionSync:
    """Keeps the groups of a realm's users equal to the permissions of a cluster, as the work of a `Worker`.

    `ask` sends a command to the stage. The groups are set at the start, after each change, and twice a minute.
    """

    ask: Callable[[str, Mapping[str, object]], object]
    realm: str
    connect: Callable[[], AbstractContextManager[PostgresPermissions]]
    say: Callable[[str], None]
    changed: int = 0
    refused: frozenset[str] = frozenset()
    _known: dict[str, frozenset[str]] = field(default_factory=dict)

    def figures(self) -> Mapping[str, int]:
        """Return the statistics: changed memberships, and the users with too many groups, who have none."""
        return {"memberships_changed": self.changed, "users_refused": len(self.refused)}

    def work(self, worker: "Worker") -> None:
        """Set the groups until the end. Raises `SignalboxError`."""
        self._known = {}
        with self.connect() as permissions:
            while not worker.is_ending:
                self._set(permissions.groups_by_user())
                worker.wait_for_change(CHECK_SECONDS)

    def _set(self, readable: Mapping[str, frozenset[str]]) -> None:
        refused = frozenset(user for user, groups in readable.items() if len(groups) > MAXIMUM_GROUPS)
        if refused - self.refused:
            self.say(f"permissions: {len(refused)} users may read more than {MAXIMUM_GROUPS} groups, and get none")
        self.refused = refused
        gone = {user: frozenset[str]() for user in self._known.keys() - readable.keys()}
        wanted = {**readable, **gone, **dict.fromkeys(refused, frozenset[str]())}
        changed = [user for user in sorted(wanted) if self._known.get(user) != wanted[user]]
        for at in range(0, len(changed), USERS_PER_COMMAND):
            part = {user: sorted(wanted[user]) for user in changed[at : at + USERS_PER_COMMAND]}
            self._command(part)
            self._known.update({user: wanted[user] for user in part})

    def _command(self, groups: Mapping[str, list[str]]) -> None:
        """Set the groups of users; a command changes a part of them, and is repeated for the rest."""
        left = 1
        while left:
            answer: Any = self.ask("user_groups", {"exchange": self.realm, "groups": groups})
            self.changed += answer["changed"]
            left = answer["left"]
