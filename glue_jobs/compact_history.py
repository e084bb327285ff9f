"""Glue job `compact_history`: deduplicates Firehose's raw events into the Iceberg table `events`.

glue_jobs/shared/compaction.py describes the arguments (Glue 5.1 or later, with `--datalake-formats iceberg` and the
catalog's settings; no bookmarks) and the rules.
"""

import sys
from collections.abc import Sequence

from glue_jobs.shared.arguments import TimeWindow, parse_arguments
from glue_jobs.shared.compaction import OPTIONAL, REQUIRED, RawFiles, clean_up, compact
from glue_jobs.shared.lake import Lake, spark_session


def main(argv: Sequence[str]) -> None:
    """Compact the window of the arguments, and print the number of rows."""
    arguments = parse_arguments(argv, REQUIRED, optional=OPTIONAL)
    window = TimeWindow.parse(arguments)
    lake = Lake(spark_session("compact_history"), arguments["database"])
    lake.register_tables()
    print(f"compact_history: {compact(RawFiles.of(lake, arguments), window)}")
    clean_up(lake, arguments, window)


if __name__ == "__main__":
    main(sys.argv)
