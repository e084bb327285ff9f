"""The program that runs jobs' entry scripts in one process: `job_runner.py '[["script.py", "--option", …], …]'`."""

import json
import runpy
import sys
from collections.abc import Callable, Sequence
from typing import Any

from py4j.java_gateway import JavaPackage, JVMView


def main(commands: Sequence[Sequence[str]]) -> None:
    """Run each script with its arguments; the first that fails ends the process."""
    cache_java_names()
    for command in commands:
        sys.argv = list(command)
        runpy.run_path(command[0], run_name="__main__")


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


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
