"""Runs one query over the tables with Spark: what the local stage has in place of Athena.

Its command line:

--database      the database of the tables: <stage>_history
--history_path  where Firehose writes, without the partitions: s3://<bucket>/raw; the table events_raw
--query         the query; tables need no database before their names
--output        the file on this machine for the answer: {"columns": [names], "rows": [[text or null]]}
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from glue_jobs.shared.arguments import resolved
from glue_jobs.shared.lake import CATALOG, session
from glue_jobs.transforms.events import SCHEMA

RAW = "events_raw"
RAW_SCHEMA = StructType([*SCHEMA, StructField("dt", StringType()), StructField("hour", StringType())])


def main(argv: Sequence[str]) -> None:
    """Ask, and write down the answer; all values are text, as Athena gives them."""
    given = resolved(argv, ("database", "history_path", "query", "output"))
    spark, query = session("query"), given["query"]
    spark.sql(f"USE {CATALOG}.{given['database']}")
    if RAW in query:
        # A view has no database, as this table has in Athena, and is no table of the catalog's.
        query = query.replace(f"{given['database']}.{RAW}", RAW)
        spark.read.schema(RAW_SCHEMA).parquet(given["history_path"]).createOrReplaceTempView(RAW)
    found = spark.sql(query)
    numbered = found.toDF(*(f"c{number}" for number in range(len(found.columns))))  # two may have one name
    rows = [list(row) for row in numbered.select(*(F.col(name).cast("string") for name in numbered.columns)).collect()]
    Path(given["output"]).write_text(json.dumps({"columns": found.columns, "rows": rows}))


if __name__ == "__main__":
    main(sys.argv)
