"""Maintenance of the Iceberg tables: retention, compaction of files, old snapshots and orphan files."""

from datetime import datetime

from glue_jobs.shared.commits import repeat_on_conflict
from glue_jobs.shared.files import glob_paths
from glue_jobs.shared.lake import CATALOG, Lake
from glue_jobs.transforms.tables import EVENTS, TABLES

RETAINED_SNAPSHOTS = 5
# A partition is rewritten if it has at least five files, or if a merge has deleted rows of a file.
REWRITE_OPTIONS = "map('min-input-files', '5', 'delete-file-threshold', '1', 'remove-dangling-deletes', 'true')"


def delete_events(lake: Lake, *, before: datetime) -> None:
    """Delete the events of the days before `before`; this changes only metadata."""
    made = lake.ensure(EVENTS.name)
    midnight = f"TIMESTAMP '{before:%Y-%m-%d} 00:00:00'"
    statement = f"DELETE FROM {lake.name(made.name)} WHERE {made.time} < {midnight}"  # noqa: S608 - contains no user input
    repeat_on_conflict(lambda: lake.spark.sql(statement))


class SharedPathError(Exception):
    """Raised when the path of a table has files of another table, which the removal of orphan files would delete."""


def maintain(lake: Lake) -> None:
    """Compact small files, expire snapshots after five days, and remove unreferenced files after three days.

    Readers of an old snapshot, and writers before their commit, must end within these times. Raises `SharedPathError`
    after the maintenance of all tables, if the unreferenced files of one may be those of another table.
    """
    tables = [table for table in TABLES if lake.exists(table)]
    for table in tables:
        _compact(lake, f"{lake.database}.{table}")
    shared = [table for table in tables if len(_tables_at_path(lake, table)) > 1]
    for table in tables:
        if table not in shared:
            _call(lake, f"remove_orphan_files(table => '{lake.database}.{table}')")
    if shared:
        raise SharedPathError(
            f"no unreferenced files of {', '.join(shared)} were removed: the paths also have metadata of other tables. "
            "See docs/operations.md"
        )


def _compact(lake: Lake, table: str) -> None:
    _call(lake, f"rewrite_data_files(table => '{table}', strategy => 'sort', options => {REWRITE_OPTIONS})")
    _call(lake, f"expire_snapshots(table => '{table}', retain_last => {RETAINED_SNAPSHOTS})")


def _tables_at_path(lake: Lake, table: str) -> set[str]:
    """Return the ids of all tables with metadata files at the path of a table; each metadata file has its table's."""
    files = glob_paths(lake.spark, lake.metadata_pattern(table))
    ids = lake.spark.read.option("multiLine", value=True).schema("`table-uuid` string").json(files)
    return {row["table-uuid"] for row in ids.distinct().collect()}


def _call(lake: Lake, procedure: str) -> None:
    repeat_on_conflict(lambda: lake.spark.sql(f"CALL {CATALOG}.system.{procedure}"))
