"""A runner of the job `day` in one Spark process, with the time of each step: `python jobs.py ARGUMENT…`."""

import json
import sys
import time

from glue_jobs import day
from signalbox.local.spark.job_runner import cache_java_names

STARTED = time.perf_counter()


def main(argv: list[str]) -> None:
    """Run each step; the time of the first includes the start of Spark, as in a Glue job."""
    cache_java_names()
    before = STARTED
    for step in day.steps(argv):
        step.run()
        now = time.perf_counter()
        print(json.dumps({"name": step.name, "seconds": now - before}), flush=True)
        before = now


if __name__ == "__main__":
    main(sys.argv)
