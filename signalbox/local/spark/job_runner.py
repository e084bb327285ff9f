"""Runs the entry scripts of jobs in one process: `python job_runner.py '[["script.py", "--word", …], …]'`."""

import json
import runpy
import sys
from collections.abc import Callable, Sequence
from typing import Any

from py4j.java_gateway import JavaPackage, JVMView


def main(commands: Sequence[Sequence[str]]) -> None:
    """Run each script as its own command line would; the first that fails ends the process."""
    look_up_once()
    for command in commands:
        sys.argv = list(command)
        runpy.run_path(command[0], run_name="__main__")


def look_up_once() -> None:
    """Let PySpark find each name of Java's once.

    It asks for `functions` anew at each `F.col` and the like, and Java then looks through all its archives for classes
    of that name in every package that PySpark has imported: a sixth of the time of a job over few rows.
    """
    for names in (JVMView, JavaPackage):
        names.__getattr__ = remembering(names.__getattr__)


def remembering(look_up: Callable[[Any, str], object]) -> Callable[[Any, str], object]:
    """Return a `__getattr__` that is asked for each name once, since what it finds becomes an attribute."""

    def looked_up(names: Any, name: str) -> object:  # noqa: ANN401 - whatever has names
        found = names.__dict__[name] = look_up(names, name)
        return found

    return looked_up


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
