"""A runner of job scripts in one Spark process, each timed: `python jobs.py '{"name": ["script.py", …]}'`."""

import json
import runpy
import sys
import time

STARTED = time.perf_counter()


def main(commands: dict[str, list[str]]) -> None:
    """Run each command; the time of the first includes the start of the program, as in a Glue job."""
    before = STARTED
    for name, command in commands.items():
        sys.argv = command
        runpy.run_path(command[0], run_name="__main__")
        now = time.perf_counter()
        print(json.dumps({"name": name, "seconds": now - before}), flush=True)
        before = now


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
