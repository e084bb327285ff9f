"""What Arvados' API server (3.2.1) writes: tables, and in the same transaction rows of `logs` with their NOTIFY.

Rows have all attributes before and after, an owner after the change, and the time of the change, as in
services/api/app/models/log.rb. What has no row in Arvados, such as a container's priority, has none here.
"""

import json
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from signalbox.live.bridge.rows import STATE_COLUMNS
from signalbox.live.bridge.topics import kind_of
from tests.fakes.arvados.log_endpoint import Answer, ContainerLog, LogEndpoint, State
from tests.postgres import ClusterDatabase

SYSTEM = "zzzzz-tpzed-000000000000000"
INFIXES = {"container": "dz642", "request": "xvhdp", "collection": "4zz18", "group": "j7d0g", "link": "o0j2j"}
INFIXES |= {"user": "tpzed"}
OF_EVERY_OBJECT = ("uuid", "owner_uuid", "created_at", "modified_at")  # columns; a row of `logs` has every attribute
LEVELS = {"can_read": 1, "can_write": 2, "can_manage": 3}
Attributes = dict[str, Any]


def new_uuid(kind: str) -> str:
    """Return the UUID of a new object."""
    return f"zzzzz-{INFIXES[kind]}-{secrets.token_hex(8)[:15]}"


@dataclass(slots=True)
class ArvadosCluster:
    """A cluster with a database and a log endpoint; `objects` are the present ones."""

    database: ClusterDatabase
    endpoint: LogEndpoint = field(default_factory=lambda: LogEndpoint({}))
    objects: dict[str, Attributes] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)

    @contextmanager
    def transaction(self) -> Iterator["Transaction"]:
        """Provide a transaction, which is committed at the end."""
        with self.database.transaction() as connection:
            yield Transaction(self, connection)
            connection.commit()

    def create(self, kind: str, owner: str, **attributes: object) -> str:
        """Create an object, and return its UUID."""
        uuid = new_uuid(kind)
        with self.transaction() as writing:
            writing.create(uuid, owner_uuid=owner, **attributes)
        return uuid

    def update(self, uuid: str, **changes: object) -> None:
        """Change an object; its own transaction."""
        with self.transaction() as writing:
            writing.update(uuid, **changes)

    def delete(self, uuid: str) -> None:
        """Delete an object."""
        with self.transaction() as writing:
            writing.delete(uuid)

    def submit(self, owner: str, *, priority: int = 500, container: str = "") -> tuple[str, str]:
        """Commit a container request, which takes a new container or a given one; return both UUIDs."""
        request, found = new_uuid("request"), container or new_uuid("container")
        with self.transaction() as writing:
            state = {"state": "Uncommitted", "priority": priority, "container_uuid": None, "name": "align"}
            writing.create(request, owner_uuid=owner, **state)
            if not container:
                writing.create(found, owner_uuid=SYSTEM, state="Queued", priority=0, finished_at=None)
                self.endpoint.add(ContainerLog(request, found))
            writing.update(request, state="Committed", container_uuid=found)
            writing.silently(found, priority=priority)  # lib/update_priorities.rb, by SQL
        return request, found

    def lock(self, container: str) -> None:
        """Lock a container, as a dispatcher does."""
        self._move(container, State.LOCKED, lock_count=self.objects[container].get("lock_count", 0) + 1)

    def unlock(self, container: str) -> None:
        """Return a container to the queue."""
        self._move(container, State.QUEUED)

    def run(self, container: str) -> ContainerLog:
        """Start a container, and return its log."""
        log = self.endpoint.logs[container]
        log.save()
        self._move(container, State.RUNNING, gateway_address="10.0.0.7:1234", log="d41d8cd98f00b204e9800998ecf8427e+0")
        return log

    def finish(self, container: str, state: State = State.COMPLETE) -> None:
        """End a container; its requests become final in the same transaction."""
        self.endpoint.logs[container].end(self.endpoint.logs[container].state)
        with self.transaction() as writing:
            at = datetime.now(UTC).replace(tzinfo=None)
            writing.update(container, state=state.value, finished_at=at, exit_code=0, output="x+0", log="y+1")
            for request in self._requests(container):
                writing.update(request, state="Final", output_uuid=new_uuid("collection"))
            self.endpoint.logs[container].state = state

    def retry(self, container: str) -> str:
        """Cancel a container and give its requests another one, as after a lost node; return it."""
        other = new_uuid("container")
        with self.transaction() as writing:
            at = datetime.now(UTC).replace(tzinfo=None)
            writing.update(container, state="Cancelled", finished_at=at)
            writing.create(other, owner_uuid=SYSTEM, state="Queued", priority=500, finished_at=None)
            for request in self._requests(container):
                writing.update(request, container_uuid=other)
                self.endpoint.add(ContainerLog(request, other))
            self.endpoint.logs[container].state = State.CANCELLED
        return other

    def cancel(self, request: str) -> None:
        """Set a request's priority to 0; a queued container stays as it is, with a priority that has no row."""
        self.prioritize(request, 0)

    def prioritize(self, request: str, priority: int) -> None:
        """Change a request's priority, and by SQL that of its container."""
        container = self.objects[request]["container_uuid"]
        with self.transaction() as writing:
            writing.update(request, priority=priority)
            others = [self.objects[one]["priority"] for one in self._requests(container) if one != request]
            writing.silently(container, priority=max([priority, *others]))

    def permit(self, user: str, target: str, name: str = "can_read") -> str:
        """Give a user a permission, in the transaction that creates the link; return the link."""
        link = new_uuid("link")
        with self.transaction() as writing:
            writing.create(
                link, owner_uuid=SYSTEM, link_class="permission", name=name, tail_uuid=user, head_uuid=target
            )
            writing.permissions(user, target, LEVELS[name])
        return link

    def revoke(self, link: str) -> None:
        """Delete a link of a permission."""
        found = self.objects[link]
        with self.transaction() as writing:
            writing.delete(link)
            writing.permissions(found["tail_uuid"], found["head_uuid"], 0)

    def trash(self, group: str) -> None:
        """Put a group into the trash."""
        at = datetime.now(UTC).replace(tzinfo=None) - timedelta(seconds=1)
        with self.transaction() as writing:
            writing.update(group, is_trashed=True, trash_at=at)
            writing.connection.execute(b"INSERT INTO trashed_groups VALUES (%s, %s)", [group, at])

    def answer(self, method: str, path: str) -> Answer | None:
        """Answer a dispatcher's requests about a container; None for other requests."""
        found = re.fullmatch(r"/arvados/v1/containers/([a-z0-9-]{27})(/lock)?(\?.*)?", path)
        if found is None or found[1] not in self.objects:
            return None
        container = self.objects[found[1]]
        if method == "POST" and found[2]:
            if container["state"] != "Queued" or not container["priority"]:
                return Answer(422, body=b'{"errors":["Container cannot be locked"]}')
            self.lock(found[1])
        if method == "PUT":
            self.finish(found[1], State.CANCELLED)
        return Answer(200, body=json.dumps(container, default=str).encode())

    def _move(self, container: str, state: State, **changes: object) -> None:
        self.update(container, state=state.value, **changes)
        self.endpoint.logs[container].state = state

    def _requests(self, container: str) -> list[str]:
        return [uuid for uuid, one in self.objects.items() if one.get("container_uuid") == container]


@dataclass(slots=True)
class Transaction:
    """The writes of one transaction of the API server."""

    cluster: ArvadosCluster
    connection: Any

    def create(self, uuid: str, **attributes: object) -> None:
        """Create an object."""
        at = _now()
        found = {"uuid": uuid, "created_at": at, "modified_at": at, **attributes}
        self.cluster.objects[uuid] = found
        self._store(uuid, found, is_new=True)
        self._log("create", uuid, {}, found)

    def update(self, uuid: str, **changes: object) -> None:
        """Change an object."""
        before = dict(self.cluster.objects[uuid])
        found = self.cluster.objects[uuid]
        found.update({**changes, "modified_at": _now()})
        self._store(uuid, found)
        self._log("update", uuid, before, found)

    def delete(self, uuid: str) -> None:
        """Delete an object."""
        before = self.cluster.objects.pop(uuid)
        table, _ = STATE_COLUMNS[kind_of(uuid)]
        self.connection.execute(f"DELETE FROM {table} WHERE uuid = %s".encode(), [uuid])  # noqa: S608 - names of tables
        self._log("delete", uuid, before, {})

    def silently(self, uuid: str, **changes: object) -> None:
        """Change an object by SQL, without a row and another time."""
        self.cluster.objects[uuid].update(changes)
        self._store(uuid, self.cluster.objects[uuid])

    def permissions(self, user: str, target: str, level: int) -> None:
        """Store the level of a user on a group or user, as lib/update_permissions.rb computes it."""
        delete = b"DELETE FROM materialized_permissions WHERE user_uuid = %s AND target_uuid = %s"
        self.connection.execute(delete, [user, target])
        if level:
            insert = b"INSERT INTO materialized_permissions VALUES (%s, %s, %s, true)"
            self.connection.execute(insert, [user, target, level])

    def _store(self, uuid: str, found: Mapping[str, Any], *, is_new: bool = False) -> None:
        table, columns = STATE_COLUMNS[kind_of(uuid)]
        names = OF_EVERY_OBJECT + columns
        values = [found.get(name) for name in names]
        if is_new:
            marks = ", ".join(["%s"] * len(names))
            statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - names of columns
        else:
            assigned = ", ".join(f"{name} = %s" for name in names)
            statement, values = f"UPDATE {table} SET {assigned} WHERE uuid = %s", [*values, uuid]  # noqa: S608
        self.connection.execute(statement.encode(), values)

    def _log(self, event: str, uuid: str, before: Attributes, after: Attributes) -> None:
        properties = {
            "old_etag": _etag(before),
            "new_etag": _etag(after),
            "old_attributes": before or None,
            "new_attributes": after or None,
        }
        number = self.cluster.database.insert(
            self.connection,
            uuid=f"zzzzz-57u5n-{secrets.token_hex(8)[:15]}",
            object_uuid=uuid,
            object_owner_uuid=(after or before)["owner_uuid"],
            event_type=event,
            event_at=(after or before)["modified_at"] if event != "delete" else _now(),
            properties=json.dumps(properties, default=str),
        )
        self.cluster.rows.append(number)


def _etag(attributes: Attributes) -> str | None:
    return f"{hash(json.dumps(attributes, default=str)) & 0xFFFFFFFF:x}" if attributes else None


def _now() -> datetime:
    """Return the time of a change, later than any before."""
    return datetime.now(UTC).replace(tzinfo=None) + timedelta(microseconds=1)
