"""Maintenance of the Iceberg tables: retention, compaction of files, old snapshots and orphan files."""

from datetime import datetime

from glue_jobs.shared.lake import CATALOG, Lake
from glue_jobs.transforms.tables import EVENTS, TABLES

RETAINED_SNAPSHOTS = 5
# A partition is rewritten if it has at least five files, or if a merge has deleted rows of a file.
REWRITE_OPTIONS = "map('min-input-files', '5', 'delete-file-threshold', '1', 'remove-dangling-deletes', 'true')"


def delete_events(lake: Lake, *, before: datetime) -> None:
    """Delete the events of the days before `before`; this changes only metadata."""
    made = lake.ensure(EVENTS.name)
    midnight = f"TIMESTAMP '{before:%Y-%m-%d} 00:00:00'"
    lake.spark.sql(f"DELETE FROM {lake.name(made.name)} WHERE {made.time} < {midnight}")  # noqa: S608 - contains no user input


def maintain(lake: Lake) -> None:
    """Compact small files, expire snapshots after five days, and remove unreferenced files after three days.

    Readers of an old snapshot, and writers before their commit, must end within these times.
    """
    for table in TABLES:
        if lake.spark.catalog.tableExists(lake.name(table)):
            _maintain(lake, f"{lake.database}.{table}")


def _maintain(lake: Lake, table: str) -> None:
    for call in (
        f"rewrite_data_files(table => '{table}', strategy => 'sort', options => {REWRITE_OPTIONS})",
        f"expire_snapshots(table => '{table}', retain_last => {RETAINED_SNAPSHOTS})",
        f"remove_orphan_files(table => '{table}')",
    ):
        lake.spark.sql(f"CALL {CATALOG}.system.{call}")
