"""A Spark query of the history's tables, which replaces Athena on the local stage.

Arguments:
--database      the database of the tables: <stage>_lake
--history_path  the prefix of Firehose's files, without partitions: s3://<bucket>/raw; the table events_raw
--query         the query; table names need no database
--output        the local file for the result: {"columns": [names], "rows": [[text or null]]}, or for a query that Spark
                cannot run: {"problem": reason, "is_missing": whether a table or its files are, "tables": [names]}

"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from glue_jobs.shared.arguments import parse_arguments
from glue_jobs.shared.lake import CATALOG, spark_session
from glue_jobs.transforms.events import SCHEMA

RAW = "events_raw"
# Spark's error classes for a table, and for the folder of files that no event has made yet.
MISSING = ("TABLE_OR_VIEW_NOT_FOUND", "PATH_NOT_FOUND")
RAW_SCHEMA = StructType([*SCHEMA, StructField("dt", StringType()), StructField("hour", StringType())])


def main(argv: Sequence[str]) -> None:
    """Run the query and write its result; all values are text, as in Athena's results."""
    given = parse_arguments(argv, ("database", "history_path", "query", "output"))
    spark = spark_session("query")
    spark.sql(f"USE {CATALOG}.{given['database']}")
    try:
        answer = _answer(spark, given)
    except (AnalysisException, ParseException) as error:
        answer = _problem(spark, error)
    Path(given["output"]).write_text(json.dumps(answer))


def _answer(spark: SparkSession, given: Mapping[str, str]) -> dict[str, object]:
    query = given["query"]
    if RAW in query:
        # In Athena this table belongs to the database; a Spark view has none and is not in the catalog.
        query = query.replace(f"{given['database']}.{RAW}", RAW)
        spark.read.schema(RAW_SCHEMA).parquet(given["history_path"]).createOrReplaceTempView(RAW)
    found = spark.sql(query)
    numbered = found.toDF(*(f"c{number}" for number in range(len(found.columns))))  # names may be duplicates
    rows = [list(row) for row in numbered.select(*(F.col(name).cast("string") for name in numbered.columns)).collect()]
    return {"columns": found.columns, "rows": rows}


def _problem(spark: SparkSession, error: AnalysisException | ParseException) -> dict[str, object]:
    # The lines after the first are the query's plan, or the query itself.
    reason = next(line.strip().rstrip(";") for line in str(error).splitlines() if line.strip())
    tables = [row["tableName"] for row in spark.sql("SHOW TABLES").collect()]
    return {"problem": reason, "is_missing": error.getErrorClass() in MISSING, "tables": tables}


if __name__ == "__main__":
    main(sys.argv)
