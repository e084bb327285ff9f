"""A program of Celery whose tasks write down their numbers; as a script it sends them."""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from celery import Celery
from celery.signals import worker_ready

app = Celery("tasks", broker=os.environ.get("BROKER", "signalbox://local"))
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    event_queue_ttl=600,  # a busy machine may take longer than the 5 s of Celery
    broker_connection_retry_on_startup=True,
    broker_transport_options={"visibility_timeout": int(os.environ["VISIBILITY"])},
)
SENDERS = 4


@app.task
def note(number: int, seconds: float) -> None:
    """Work, then append the number with one write, which no other one interrupts."""
    time.sleep(seconds)
    with Path(os.environ["DONE"]).open("ab", buffering=0) as done:
        done.write(b"%d\n" % number)


@worker_ready.connect
def write_ready(**_: object) -> None:
    """Write down that this worker receives tasks."""
    with Path(f"{os.environ['DONE']}-ready").open("ab", buffering=0) as ready:
        ready.write(b"%d\n" % os.getpid())


def send(first: int, end: int, seconds: float, countdown: float) -> None:
    """Send the tasks of some numbers."""
    with ThreadPoolExecutor(SENDERS) as pool:
        list(pool.map(lambda number: note.apply_async((number, seconds), countdown=countdown), range(first, end)))


if __name__ == "__main__":
    send(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
