"""A Spark query of the history's tables, which replaces Athena on the local stage.

Arguments:
--database      the database of the tables: <stage>_lake
--history_path  the prefix of Firehose's files, without partitions: s3://<bucket>/raw; the table events_raw
--query         the query; table names need no database. Statements that write or run anything else are refused
--output        the local file for the result: {"columns": [names], "rows": [[text or null]]}, or for a query that Spark
                cannot run or that is refused:
                {"problem": reason, "is_missing": whether a table or its files are, "tables": [names]}

"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from py4j.java_gateway import JavaObject, is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from glue_jobs.shared.arguments import parse_arguments
from glue_jobs.shared.lake import CATALOG, spark_session
from glue_jobs.transforms.events import SCHEMA

RAW = "events_raw"
# Spark's error classes for a table, and for the folder of files that no event has made yet.
MISSING = ("TABLE_OR_VIEW_NOT_FOUND", "PATH_NOT_FOUND")
PLANS = "org.apache.spark.sql.catalyst.plans.logical"
# What Spark's parser makes of a query. All else that it makes writes, changes the session or runs a program.
QUERY_PLANS = frozenset(
    {
        *("Aggregate", "Distinct", "Except", "Filter", "Generate", "GlobalLimit", "Intersect", "Join", "LateralJoin"),
        *("LocalLimit", "Offset", "OneRowRelation", "Pivot", "Project", "RelationTimeTravel"),
        *("RepartitionByExpression", "Sample", "Sort", "SubqueryAlias", "Union", "Unpivot", "WithWindowDefinition"),
        *("UnresolvedHaving", "UnresolvedHint", "UnresolvedInlineTable", "UnresolvedRelation"),
        *("UnresolvedSubqueryColumnAliases", "UnresolvedTVFAliases", "UnresolvedTableValuedFunction", "UnresolvedWith"),
    }
)
# Statements that show tables and plans, and the parts of their plans.
SHOWN_PLANS = frozenset(
    {
        *("DescribeRelation", "ExplainCommand", "ShowColumns", "ShowTables"),
        *("UnresolvedNamespace", "UnresolvedTable", "UnresolvedTableOrView"),
    }
)
# They call methods of Java.
REFUSED_FUNCTIONS = ("java_method", "reflect")
REFUSED = "only queries are accepted (SELECT, VALUES, TABLE, SHOW, DESCRIBE, EXPLAIN), not {}"
RAW_SCHEMA = StructType([*SCHEMA, StructField("dt", StringType()), StructField("hour", StringType())])


def main(argv: Sequence[str]) -> None:
    """Run the query and write its result; all values are text, as in Athena's results."""
    given = parse_arguments(argv, ("database", "history_path", "query", "output"))
    spark = spark_session("query")
    _restrict(spark)
    spark.sql(f"USE {CATALOG}.{given['database']}")
    try:
        refused = _refused_plan(spark, given["query"])
        answer = (
            {"problem": REFUSED.format(refused), "is_missing": False, "tables": []}
            if refused
            else _answer(spark, given)
        )
    except (PySparkException, Py4JJavaError) as error:
        answer = _problem(spark, error)
    Path(given["output"]).write_text(json.dumps(answer))


def _restrict(spark: SparkSession) -> None:
    """Refuse files as tables (SELECT * FROM parquet.`/path`), `${env:NAME}`, and functions that call Java."""
    for setting in ("spark.sql.runSQLOnFiles", "spark.sql.variable.substitute"):
        spark.conf.set(setting, "false")
    functions = spark._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001 - PySpark has no API for it
    for name in REFUSED_FUNCTIONS:
        functions.dropFunction(spark._jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name))  # type: ignore[union-attr]  # noqa: SLF001 - never None


def _refused_plan(spark: SparkSession, query: str) -> str | None:
    """Return the first part of a query's parsed plan that no query has. Raises `ParseException`."""
    plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(query)  # noqa: SLF001 - PySpark has no API for it
    names = (part.getClass().getSimpleName() for part in _parts(spark, plan))
    return next((name for name in names if name not in QUERY_PLANS | SHOWN_PLANS), None)


def _parts(spark: SparkSession, plan: JavaObject) -> Iterator[JavaObject]:
    yield plan
    within = [plan.logicalPlan()] if plan.getClass().getSimpleName() == "ExplainCommand" else []
    for parts in (plan.children(), plan.innerChildren(), plan.subqueries()):
        within += [parts.apply(number) for number in range(parts.size())]
    for part in within:
        # The inner children of a command may be texts.
        if is_instance_of(spark.sparkContext._gateway, part, f"{PLANS}.LogicalPlan"):  # noqa: SLF001 - py4j's parameter
            yield from _parts(spark, part)


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


def _problem(spark: SparkSession, error: PySparkException | Py4JJavaError) -> dict[str, object]:
    text = str(error) if isinstance(error, PySparkException) else _cause(error.java_exception)
    # The lines after the first are the query's plan, or the query itself.
    reason = next((line.strip().rstrip(";") for line in text.splitlines() if line.strip()), type(error).__name__)
    tables = [row["tableName"] for row in spark.sql("SHOW TABLES").collect()]
    is_missing = isinstance(error, PySparkException) and error.getErrorClass() in MISSING
    return {"problem": reason, "is_missing": is_missing, "tables": tables}


def _cause(exception: JavaObject) -> str:
    """Return the first cause of an exception: what follows it is about stages and tasks."""
    while (before := exception.getCause()) is not None:
        exception = before
    return str(exception.toString())


if __name__ == "__main__":
    main(sys.argv)
