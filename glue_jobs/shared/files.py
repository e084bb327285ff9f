"""Files beside Spark's tables, through Hadoop's file systems, so that `s3://` means the same everywhere."""

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession


def existing(spark: SparkSession, pattern: str) -> list[str]:
    """Return the paths that fit a glob pattern, sorted; none when nothing does."""
    path, file_system = _located(spark, pattern)
    # null, not an empty array, when a pattern without a wildcard fits nothing
    return sorted(status.getPath().toString() for status in file_system.globStatus(path) or [])


def write_text(spark: SparkSession, uri: str, *, text: str) -> None:
    """Put a text into one file, in place of what is there."""
    path, file_system = _located(spark, uri)
    stream = file_system.create(path)
    try:
        stream.write(bytearray(text, "utf-8"))
    finally:
        stream.close()


def _located(spark: SparkSession, uri: str) -> tuple[JavaObject, JavaObject]:
    """Return Hadoop's path and the file system that it lies in; PySpark has no public way to either."""
    context = spark.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(uri)  # type: ignore[union-attr]  # noqa: SLF001 - never None
    return path, path.getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001
