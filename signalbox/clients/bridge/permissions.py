"""The permissions of an Arvados cluster as the groups of a realm: each user is in the groups that may be read now."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from signalbox.clients.bridge.postgres import PostgresReader, translated_errors

if TYPE_CHECKING:
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
# The user at the top of each group, the oldest group first.
OWNERS = """
    WITH RECURSIVE owned (uuid, created_at, owner) AS (
      SELECT uuid, created_at, owner_uuid FROM groups WHERE owner_uuid LIKE '_____-tpzed-%'
      UNION ALL SELECT groups.uuid, groups.created_at, owner FROM groups JOIN owned ON groups.owner_uuid = owned.uuid
    )
    SELECT uuid, owner FROM owned ORDER BY created_at, uuid
"""
# Trash counts by time, and a row may be late.
CHECK_SECONDS = 30.0
MAXIMUM_GROUPS = 1_000  # of a user in a realm
USERS_PER_COMMAND = 20
COMMANDS_PER_READ = 20  # of some 1.5 s each: an ended permission waits for no more of them
Groups = Mapping[str, frozenset[str]]
Owners = Mapping[str, tuple[int, str]]


class PostgresPermissions(PostgresReader):
    """The permissions in PostgreSQL."""

    def groups_by_user(self) -> Groups:
        """Return for each user the projects, groups and users whose objects the user may read."""
        with translated_errors():
            rows = self.connection.execute(READABLE).fetchall()
        return {user: frozenset([ADMINISTRATORS] if is_admin else groups or ()) for user, is_admin, groups in rows}

    def owners(self) -> Owners:
        """Return for each project and group its place by age, and the user who owns it or the project at its top."""
        with translated_errors():
            rows = self.connection.execute(OWNERS).fetchall()
        return {uuid: (place, owner) for place, (uuid, owner) in enumerate(rows)}


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
    limited: frozenset[str] = frozenset()
    _known: dict[str, frozenset[str]] = field(default_factory=dict)  # at least those that the realm has
    _unfinished: Counter[str] = field(default_factory=Counter)  # the commands so far of users who need further ones

    def figures(self) -> Mapping[str, int]:
        """Return the statistics: changed memberships, and the users with more groups than a realm holds."""
        return {"memberships_changed": self.changed, "users_limited": len(self.limited)}

    def work(self, worker: "Worker") -> None:
        """Set the groups until the end. Raises `SignalboxError`."""
        self._known, self._unfinished = {}, Counter()
        with self.connect() as permissions:
            while not worker.is_ending:
                if not self._set(self._within_limit(permissions)):
                    worker.wait_for_change(CHECK_SECONDS)

    def _within_limit(self, permissions: PostgresPermissions) -> Groups:
        readable = permissions.groups_by_user()
        limited = frozenset(user for user, groups in readable.items() if len(groups) > MAXIMUM_GROUPS)
        if limited - self.limited:
            self.say(f"permissions: {len(limited)} users may read more than the {MAXIMUM_GROUPS} groups that they get")
        self.limited = limited
        owners = permissions.owners() if limited else {}
        return {user: _shares(user, groups, owners) if user in limited else groups for user, groups in readable.items()}

    def _set(self, readable: Groups) -> bool:
        """Send some commands, for ended permissions first; return whether there are more to send."""
        wanted = {**dict.fromkeys(self._known, frozenset[str]()), **readable}
        changed = [user for user in wanted if user in self._unfinished or self._known.get(user) != wanted[user]]
        changed.sort(key=lambda user: (self._known.get(user, wanted[user]) <= wanted[user], self._unfinished[user]))
        now = changed[: COMMANDS_PER_READ * USERS_PER_COMMAND]
        for at in range(0, len(now), USERS_PER_COMMAND):
            self._command({user: wanted[user] for user in now[at : at + USERS_PER_COMMAND]})
        return len(now) < len(changed) or bool(self._unfinished)

    def _command(self, wanted: Groups) -> None:
        """Set the groups of users; the stage changes a part of them, first those that end."""
        groups = {user: sorted(groups) for user, groups in wanted.items()}
        answer: Any = self.ask("user_groups", {"exchange": self.realm, "groups": groups})
        self.changed += answer["changed"]
        for user in wanted:
            if answer["left"]:
                self._known[user] = self._known.get(user, wanted[user]) | wanted[user]
                self._unfinished[user] += 1
            else:
                self._known[user] = wanted[user]
                del self._unfinished[user]


def _shares(user: str, readable: frozenset[str], owners: Owners) -> frozenset[str]:
    """Return as many groups as a realm holds: the user's own, then in rotation the oldest of each other owner.

    So what one owner shares takes no place of what another does.
    """
    turns: Counter[str] = Counter()
    ranks = {}
    for (_, owner), group in sorted((owners.get(one, (-1, one)), one) for one in readable):
        turns[owner] += 1
        ranks[group] = (owner != user, turns[owner])
    return frozenset(sorted(ranks, key=ranks.__getitem__)[:MAXIMUM_GROUPS])
