"""The table `logs` of an Arvados cluster, read from PostgreSQL with psycopg, which only the bridge needs."""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, Self

import yaml

from signalbox.errors import RejectedError, UnavailableError
from signalbox.live.bridge.rows import STATE_COLUMNS, DatabaseRow, IdRange, ObjectRecord, RowContainer
from signalbox.live.bridge.topics import CONTAINER, REQUEST, kind_of

if TYPE_CHECKING:
    import psycopg

CHANNEL = "logs"  # of the NOTIFY of each row (services/api/app/models/log.rb, send_notify)
CONNECT_SECONDS = 10
# A server that does not answer for this long is lost; rows are read by their primary key.
STATEMENT_MILLISECONDS = 30_000
# Both sides detect a peer that has gone silently, so that the lock of a lost machine is free after half a minute.
KEEPALIVE = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3}
OPTIONS = " ".join(
    f"-c {name}={value}"
    for name, value in {
        "statement_timeout": STATEMENT_MILLISECONDS,
        "default_transaction_read_only": "on",
        **{f"tcp_{name}": value for name, value in KEEPALIVE.items()},
    }.items()
)
INSTALL = "the bridge needs psycopg: install the extra `arvados` of this package, or pip install 'psycopg[binary]'"
CONTAINER_UUID = re.compile("[a-z0-9]{5}-dz642-[a-z0-9]{15}")  # the properties of a row have any text
YAML_MARK = "---"  # of properties that an old cluster wrote (services/api/lib/serializers.rb)

LOCK = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
NEWEST = "SELECT coalesce(max(id), 0) FROM logs"
IDS_AFTER = "SELECT id FROM logs WHERE id > %s ORDER BY id LIMIT %s"
IDS_WITHIN = """
    SELECT id FROM unnest(%s::bigint[], %s::bigint[]) AS ranges (low, high) JOIN logs ON id BETWEEN low AND high
"""
# A transaction holds the lock from before it takes an id until its row is visible.
WRITERS = """
    SELECT virtualtransaction FROM pg_locks
    WHERE locktype = 'relation' AND relation = 'logs'::regclass AND mode = 'RowExclusiveLock' AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
# Each user may write rows of any size; parsed, properties take up to 24 times as much memory.
MAXIMUM_PROPERTIES = 4_000_000  # bytes
ROWS = """
    SELECT id, uuid, object_uuid, object_owner_uuid, event_type,
           CASE WHEN event_at BETWEEN '0001-01-01' AND '9999-12-31' THEN event_at END, created_at,
           CASE WHEN octet_length(properties::text) <= %s THEN properties::text END, octet_length(properties::text)
    FROM logs WHERE id = ANY(%s)
"""
# As JSON, which has any time of PostgreSQL and any number.
RECORD = """
    SELECT owner_uuid, to_jsonb(found) - 'owner_uuid'
    FROM (SELECT owner_uuid, created_at, modified_at, {columns} FROM {table} WHERE uuid = %s) AS found
"""
RECORDS = {
    kind: RECORD.format(table=table, columns=", ".join(columns)) for kind, (table, columns) in STATE_COLUMNS.items()
}
CONTAINER_STATE = """
    SELECT owner_uuid, state,
           EXISTS (SELECT 1 FROM container_requests
                   WHERE container_uuid = containers.uuid AND state = 'Committed' AND priority > 0),
           ARRAY(SELECT DISTINCT owner_uuid FROM container_requests
                 WHERE container_uuid = containers.uuid AND state <> 'Uncommitted' ORDER BY owner_uuid LIMIT 20)
    FROM containers WHERE uuid = %s
"""
# The owners of a container's requests, which no request names any more when it has got another container.
KEPT_OWNERS = 10_000


class DatabaseUnavailable(UnavailableError):
    """Raised when PostgreSQL cannot be reached, or the connection is lost."""


class DatabaseRefused(RejectedError):
    """Raised when PostgreSQL refuses a statement of the bridge: a missing table or right, or an invalid DSN."""


@dataclass(slots=True)
class PostgresLogs:
    """Implementation of `LogTable` on one connection, which also listens to the channel `logs`.

    `unreadable` counts rows whose properties are neither JSON nor YAML; they are published without properties.
    """

    connection: "psycopg.Connection[tuple[Any, ...]]"
    unreadable: int = 0
    _owners: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def connect(cls, dsn: str) -> Iterator[Self]:
        """Connect, and listen. Raises `DatabaseUnavailable` and `DatabaseRefused`, as all methods do."""
        with connected(dsn) as connection:
            logs = cls(connection)
            with translated_errors():
                logs.connection.execute(f"LISTEN {CHANNEL}")
            yield logs

    def try_lock(self, name: str) -> bool:
        """Take the lock of a name, which the connection holds to its end; return False if another one holds it."""
        ((is_taken,),) = self._query(LOCK, name)
        return bool(is_taken)

    def wait(self, seconds: float) -> None:
        """Wait until a row is committed, at most a number of seconds."""
        with translated_errors():
            for _ in self.connection.notifies(timeout=seconds, stop_after=1):
                pass

    def newest_id(self) -> int:
        """Return the highest id that is visible, or 0."""
        ((number,),) = self._query(NEWEST)
        return int(number)

    def ids_after(self, position: int, *, limit: int) -> Sequence[int]:
        """Return the lowest ids behind a position, in ascending order."""
        return [number for (number,) in self._query(IDS_AFTER, position, limit)]

    def ids_within(self, ranges: Sequence[IdRange]) -> Sequence[int]:
        """Return the ids within ranges."""
        low, high = [one.first for one in ranges], [one.last for one in ranges]
        return [number for (number,) in self._query(IDS_WITHIN, low, high)]

    def rows(self, ids: Sequence[int]) -> Iterator[DatabaseRow]:
        """Yield the rows that still exist, with the present record of the object and, if any, its container.

        Records are read after the row, so they have the change that it describes.
        """
        for values in self._query(ROWS, MAXIMUM_PROPERTIES, list(ids)):
            row = self._row(*values)
            container = self._container(_container_of(row))
            yield replace(row, container=container, record=self._record(row.object_uuid))

    def writers(self) -> Collection[str]:
        """Return the transactions that write to the table."""
        return {writer for (writer,) in self._query(WRITERS)}

    def _container(self, uuid: str) -> RowContainer | None:
        for owner, state, is_wanted, owners in self._query(CONTAINER_STATE, uuid) if uuid else ():
            known = tuple(owners) or self._owners.get(uuid) or (owner or "",)
            self._owners.pop(uuid, None)
            self._owners[uuid] = known
            while len(self._owners) > KEPT_OWNERS:
                del self._owners[next(iter(self._owners))]
            return RowContainer(uuid, state or "", is_wanted, known)
        return None

    def _record(self, uuid: str) -> ObjectRecord | None:
        statement = RECORDS.get(kind_of(uuid))
        for owner, columns in self._query(statement, uuid) if statement else ():
            return ObjectRecord(owner or "", _with_zones(columns))
        return None

    def _query(self, statement: str, *values: object) -> Sequence[tuple[Any, ...]]:
        with translated_errors():
            return self.connection.execute(statement.encode(), values).fetchall()

    def _row(self, number: int, uuid: str, *values: Any) -> DatabaseRow:  # noqa: ANN401 - columns of a row
        object_uuid, object_owner_uuid, event_type, event_at, created_at, properties, size_bytes = values
        found = parse_properties(properties)
        self.unreadable += found is None
        return DatabaseRow(
            number,
            uuid or "",
            object_uuid or "",
            object_owner_uuid or "",
            event_type or "",
            event_at,
            created_at,
            found or {},
            omitted_bytes=0 if properties or not size_bytes else size_bytes,
        )


def _with_zones(columns: Mapping[str, object]) -> Mapping[str, object]:
    """Return columns with their times in UTC as texts; PostgreSQL has them without a zone."""
    return {name: f"{one}Z" if one and name.endswith("_at") else one for name, one in columns.items()}


def _container_of(row: DatabaseRow) -> str:
    """Return the UUID of a row's container, or of the container of its request, or an empty text."""
    kind = kind_of(row.object_uuid)
    if kind != REQUEST:
        return row.object_uuid if kind == CONTAINER else ""
    named = row.new.get("container_uuid") or row.old.get("container_uuid")
    return named if isinstance(named, str) and CONTAINER_UUID.fullmatch(named) else ""


def parse_properties(text: str | None) -> Mapping[str, object] | None:
    """Return the properties of a row, which are JSON, or YAML from an old cluster; None if they cannot be parsed.

    Values that JSON does not have become texts, such as YAML's times, or null, such as NaN.
    """
    try:
        if text and text.startswith(YAML_MARK):
            text = json.dumps(yaml.safe_load(text), default=str)
        found = json.loads(text or "{}", parse_constant=lambda _: None, parse_float=_finite)
    except (ValueError, TypeError, RecursionError, yaml.YAMLError):
        return None
    return found if isinstance(found, Mapping) else None


def _finite(text: str) -> float | None:
    number = float(text)
    return number if isfinite(number) else None


@dataclass(slots=True)
class PostgresReader:
    """Reads tables on a connection of its own. Raises what `PostgresLogs` raises."""

    connection: "psycopg.Connection[tuple[Any, ...]]"

    @classmethod
    @contextmanager
    def connect(cls, dsn: str) -> Iterator[Self]:
        """Connect."""
        with connected(dsn) as connection:
            yield cls(connection)


@contextmanager
def connected(dsn: str) -> "Iterator[psycopg.Connection[tuple[Any, ...]]]":
    """Provide a connection that only reads. Raises `DatabaseUnavailable` and `DatabaseRefused`."""
    psycopg = _psycopg()
    _check(dsn)
    with translated_errors():
        connection = psycopg.connect(
            dsn, autocommit=True, connect_timeout=CONNECT_SECONDS, options=OPTIONS, **KEEPALIVE
        )
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise psycopg's errors as ours. The text is PostgreSQL's own, which has no password."""
    psycopg = _psycopg()
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError, psycopg.InternalError) as error:
        raise DatabaseUnavailable(f"PostgreSQL: {_first_line(error)}") from error
    except psycopg.Error as error:
        raise DatabaseRefused(f"PostgreSQL: {_first_line(error)}") from error


def _check(dsn: str) -> None:
    """Refuse an invalid connection string without quoting it: it may contain a password."""
    psycopg = _psycopg()
    try:
        psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.Error:
        raise DatabaseRefused("the DSN is no connection string of PostgreSQL, such as postgresql://HOST/NAME") from None


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _psycopg() -> Any:  # noqa: ANN401 - a module
    try:
        import psycopg  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise RejectedError(INSTALL) from error
    return psycopg
