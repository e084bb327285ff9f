"""What keeps the tables of the lake small and quick to read."""

from datetime import datetime

from glue_jobs.shared.lake import CATALOG, Lake
from glue_jobs.transforms.tables import EVENTS, TABLES

KEPT_SNAPSHOTS = 5
# Files are put together from five in a partition on, or when a merge has taken rows out of one.
REWRITE = "map('min-input-files', '5', 'delete-file-threshold', '1', 'remove-dangling-deletes', 'true')"


def forget(lake: Lake, *, before: datetime) -> None:
    """Delete whole days of events; that is a change of metadata alone."""
    made = lake.ensure(EVENTS.name)
    midnight = f"TIMESTAMP '{before:%Y-%m-%d} 00:00:00'"
    lake.spark.sql(f"DELETE FROM {lake.name(made.name)} WHERE {made.time} < {midnight}")  # noqa: S608 - no input in it


def maintain(lake: Lake) -> None:
    """Put small files together, and drop snapshots after five days and files that no snapshot has after three.

    Readers who began with an old snapshot, and a writer that has not committed yet, have that long to end.
    """
    for table in TABLES:
        if lake.spark.catalog.tableExists(lake.name(table)):
            _maintain(lake, f"{lake.database}.{table}")


def _maintain(lake: Lake, table: str) -> None:
    for call in (
        f"rewrite_data_files(table => '{table}', strategy => 'sort', options => {REWRITE})",
        f"expire_snapshots(table => '{table}', retain_last => {KEPT_SNAPSHOTS})",
        f"remove_orphan_files(table => '{table}')",
    ):
        lake.spark.sql(f"CALL {CATALOG}.system.{call}")
