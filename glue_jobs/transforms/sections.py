"""Summaries in sections: the groups of several groupings of the same rows, computed and ranked together.

A query for each section would take longer to plan and compile than to run.
"""

from collections.abc import Collection, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

TOP = 10


def section(frame: DataFrame, name: str, *, among: Sequence[str], keys: Collection[str] = ()) -> Column:
    """Return the group of a row in the section `name`: the columns `among`, null except for `keys`."""
    values = (F.col(key) if key in keys else F.lit(None).cast(frame.schema[key].dataType) for key in among)
    group = [value.alias(key) for key, value in zip(among, values, strict=True)]
    return F.struct(F.lit(name).alias("section"), *group)


def in_sections(frame: DataFrame, sections: Sequence[Column]) -> DataFrame:
    """Return each row once for each section that is not null, with the section's columns instead of its own."""
    exploded = frame.withColumn("group", F.explode(F.array_compact(F.array(*sections))))
    group = exploded.select("group.*").columns
    return exploded.select("group.*", *(column for column in frame.columns if column not in group))


def ranked(groups: DataFrame, amount: Column, keys: Sequence[str], *, whole: Collection[str]) -> DataFrame:
    """Add `rank`, from 1 by the largest `amount` and then by `keys`, and `of`, the size of the section of the day.

    Sections not in `whole` are cut after the first ten.
    """
    of_section = Window.partitionBy("day", "section")
    order = of_section.orderBy(amount.desc(), *(F.col(key).asc_nulls_first() for key in keys))
    rank = F.row_number().over(order.rowsBetween(Window.unboundedPreceding, 0))
    found = groups.withColumn("rank", rank).withColumn("of", F.count("*").over(of_section))
    return found.where(F.col("section").isin(*whole) | (F.col("rank") <= TOP))
