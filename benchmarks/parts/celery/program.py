"""The program of Celery that all brokers run: `python program.py COUNT` sends tasks and prints when each was sent."""

import json
import os
import sys
import time
from pathlib import Path

from celery import Celery

app = Celery("program", broker=os.environ["BROKER"])
app.conf.update(
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
    broker_transport_options=json.loads(os.environ.get("OPTIONS", "{}")),
    # What Celery can leave out is out, for each broker: the figures are of tasks.
    worker_enable_remote_control=False,
    worker_send_task_events=False,
)


@app.task  # type: ignore[untyped-decorator]  # Celery has no types
def note(number: int) -> None:
    """Write down when the task began."""
    with Path(os.environ["DONE"]).open("ab", buffering=0) as done:
        done.write(b"%d %.6f\n" % (number, time.time()))


if __name__ == "__main__":
    pause = float(sys.argv[2])
    for number in range(int(sys.argv[1])):
        time.sleep(pause)
        sys.stdout.write(f"{number} {time.time():.6f}\n")
        note.delay(number)
