"""Runs the entry scripts of jobs in one process: `python job_runner.py '[["script.py", "--word", …], …]'`."""

import json
import runpy
import sys
from collections.abc import Sequence


def main(commands: Sequence[Sequence[str]]) -> None:
    """Run each script as its own command line would; the first that fails ends the process."""
    for command in commands:
        sys.argv = list(command)
        runpy.run_path(command[0], run_name="__main__")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
