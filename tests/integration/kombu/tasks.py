"""A program of Celery whose tasks write down their numbers; as a script it sends them."""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from celery import Celery

app = Celery("tasks", broker=os.environ.get("BROKER", "signalbox://local"))
app.conf.update(
    task_acks_late=True,
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"visibility_timeout": int(os.environ["VISIBILITY"])},
)
SENDERS = 4


@app.task
def note(number: int, seconds: float) -> None:
    """Work, then append the number with one write, which no other one interrupts."""
    time.sleep(seconds)
    with open(os.environ["DONE"], "ab", buffering=0) as done:  # noqa: PTH123 - unbuffered
        done.write(b"%d\n" % number)


def send(first: int, end: int, seconds: float, countdown: float) -> None:
    """Send the tasks of some numbers."""
    with ThreadPoolExecutor(SENDERS) as pool:
        list(pool.map(lambda number: note.apply_async((number, seconds), countdown=countdown), range(first, end)))


if __name__ == "__main__":
    send(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
