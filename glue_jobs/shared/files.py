"""Files outside Spark's tables, accessed with Hadoop's file systems, so that `s3://` works in every environment."""

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession


def glob_paths(spark: SparkSession, pattern: str) -> list[str]:
    """Return the sorted paths that match a glob pattern."""
    path, file_system = _located(spark, pattern)
    # globStatus returns null, not an empty array, when a pattern without a wildcard matches no file.
    return sorted(status.getPath().toString() for status in file_system.globStatus(path) or [])


def newest_path(spark: SparkSession, pattern: str) -> str | None:
    """Return the path that matches a glob pattern and was modified last; of several, the last by name."""
    path, file_system = _located(spark, pattern)
    found = file_system.globStatus(path) or []
    times = [(status.getModificationTime(), status.getPath().toString()) for status in found]
    return max(times)[1] if times else None


def write_text(spark: SparkSession, uri: str, *, text: str) -> None:
    """Write a text to a file, replacing its content."""
    path, file_system = _located(spark, uri)
    stream = file_system.create(path)
    try:
        stream.write(bytearray(text, "utf-8"))
    finally:
        stream.close()


def read_text(spark: SparkSession, uri: str) -> str | None:
    """Return the text of a file; None if it does not exist."""
    path, file_system = _located(spark, uri)
    if not file_system.exists(path):
        return None
    stream = file_system.open(path)
    try:
        return str(spark.sparkContext._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))  # type: ignore[union-attr]  # noqa: SLF001 - as below
    finally:
        stream.close()


def delete_path(spark: SparkSession, uri: str) -> None:
    """Delete a file, or a folder with its files; do nothing if it does not exist."""
    path, file_system = _located(spark, uri)
    file_system.delete(path, True)  # noqa: FBT003 - Hadoop's `recursive`, which has no name in Python


def _located(spark: SparkSession, uri: str) -> tuple[JavaObject, JavaObject]:
    """Return Hadoop's path and its file system; PySpark has no public API for them."""
    context = spark.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(uri)  # type: ignore[union-attr]  # noqa: SLF001 - never None
    return path, path.getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001
