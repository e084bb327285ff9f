"""A Spark query of the history's tables, which replaces Athena on the local stage.

Arguments:
--database      the database of the tables: <stage>_lake
--history_path  the prefix of Firehose's files, without partitions: s3://<bucket>/raw; the table events_raw
--query         the query; table names need no database
--output        the local file for the result: {"columns": [names], "rows": [[text or null]]}

"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from glue_jobs.shared.arguments import parse_arguments
from glue_jobs.shared.lake import CATALOG, spark_session
from glue_jobs.transforms.events import SCHEMA

RAW = "events_raw"
RAW_SCHEMA = StructType([*SCHEMA, StructField("dt", StringType()), StructField("hour", StringType())])


def main(argv: Sequence[str]) -> None:
    """Run the query and write its result; all values are text, as in Athena's results."""
    given = parse_arguments(argv, ("database", "history_path", "query", "output"))
    spark, query = spark_session("query"), given["query"]
    spark.sql(f"USE {CATALOG}.{given['database']}")
    if RAW in query:
        # In Athena this table belongs to the database; a Spark view has none and is not in the catalog.
        query = query.replace(f"{given['database']}.{RAW}", RAW)
        spark.read.schema(RAW_SCHEMA).parquet(given["history_path"]).createOrReplaceTempView(RAW)
    found = spark.sql(query)
    numbered = found.toDF(*(f"c{number}" for number in range(len(found.columns))))  # names may be duplicates
    rows = [list(row) for row in numbered.select(*(F.col(name).cast("string") for name in numbered.columns)).collect()]
    Path(given["output"]).write_text(json.dumps({"columns": found.columns, "rows": rows}))


if __name__ == "__main__":
    main(sys.argv)
