"""The program that runs jobs' entry scripts in one process; standard input has `[["script.py", "--option", …], …]`.

With the argument `--start-spark`, Spark starts before the input is read.
"""

import json
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaPackage, JVMView

from signalbox.errors import RejectedError
from signalbox.local.spark.jobs import REFUSAL


def main(commands: Sequence[Sequence[str]]) -> None:
    """Run each script with its arguments; the first that fails ends the process.

    The reason for an input that the script refuses is in the file `REFUSAL` of the working folder, without a traceback.
    """
    for command in commands:
        sys.argv = list(command)
        try:
            runpy.run_path(command[0], run_name="__main__")
        except RejectedError as error:
            Path(REFUSAL).write_text(str(error))
            sys.exit(1)


def cache_java_names() -> None:
    """Let PySpark look up each Java name once.

    PySpark looks up `functions` at each `F.col` and similar call, and Java then searches all its archives for classes
    of that name in every package that PySpark has imported: a sixth of the time of a job over few rows.
    """
    for names in (JVMView, JavaPackage):
        names.__getattr__ = caching(names.__getattr__)


def caching(find: Callable[[Any, str], object]) -> Callable[[Any, str], object]:
    """Return a `__getattr__` that runs once for each name: it stores the result as an attribute."""

    def find_once(names: Any, name: str) -> object:  # noqa: ANN401 - any object
        found = names.__dict__[name] = find(names, name)
        return found

    return find_once


def start_spark() -> None:
    """Start the session that the scripts will get."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only scripts that are given at once do without

    SparkSession.builder.getOrCreate()


if __name__ == "__main__":
    cache_java_names()
    if "--start-spark" in sys.argv:
        start_spark()
    main(json.load(sys.stdin))
