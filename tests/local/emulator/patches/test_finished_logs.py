"""The log of an invocation is complete when its handler has responded, without waiting for more."""

import base64
import json
import os
import queue
import threading
from types import SimpleNamespace

import pytest

from signalbox.local.emulator.patches.finished_logs import Lines, drained, read
from tests.local.emulator.functions import make_function
from tests.patience import wait_for

PROGRAM = """
import sys
def handler(event, context):
    for number in range(event["lines"]):
        print(f"line {number}", file=sys.stderr)
    if event["fails"]:
        raise ValueError("after its lines")
"""


class FakeWorker(SimpleNamespace):
    """A worker whose process is the other end of a pipe."""

    def __init__(self):
        reading, self.writing = os.pipe()
        super().__init__(_stderr_queue=queue.Queue(), _proc=SimpleNamespace(stderr=os.fdopen(reading)))

    def write(self, data):
        os.write(self.writing, data)

    def _drain_stderr(self):
        lines = []
        while not self._stderr_queue.empty():
            lines.append(self._stderr_queue.get())
        return "\n".join(lines)


@pytest.fixture
def worker():
    return FakeWorker()


def test_all_lines_before_the_response_are_its_log(worker):
    worker.write(b"one\ntwo\n")
    assert drained(worker) == "one\ntwo"

    worker.write(b"three\n")
    assert drained(worker) == "three"


def test_a_handler_that_writes_nothing_has_no_log(worker):
    assert drained(worker) == ""


def test_a_line_that_is_not_finished_belongs_to_the_next_response(worker):
    worker.write(b"one\ntw")
    assert drained(worker) == "one"

    worker.write("o é\n".encode() + b"\xff\n")
    assert drained(worker) == "two é\n\N{REPLACEMENT CHARACTER}"


def test_the_log_of_an_ended_process_is_read(worker):
    drained(worker)
    worker.write(b"the last words\nof a process")
    os.close(worker.writing)
    worker._proc = None

    assert drained(worker) == "the last words\nof a process"


def test_the_thread_reads_while_the_handler_runs_and_ends_with_the_process(worker):
    thread = threading.Thread(target=read, args=(worker,))
    thread.start()

    worker.write(b"one\n")
    wait_for(lambda: not worker._stderr_queue.empty(), "the line")
    os.close(worker.writing)
    thread.join()

    assert drained(worker) == "one"


def test_lines_that_two_threads_read_are_put_once_and_in_order():
    reading, writing = os.pipe()
    put = []
    lines = Lines(os.fdopen(reading), put.append)
    thread = threading.Thread(target=lines.read_all)
    thread.start()

    for number in range(2_000):
        os.write(writing, f"{number}\n".encode())
        lines.read_written()
    os.close(writing)
    thread.join()

    assert put == [str(number) for number in range(2_000)]


@pytest.mark.emulator
@pytest.mark.release
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("count", [0, 1, 200])
def test_the_log_in_a_response_is_that_of_its_invocation(running, fails, count):
    session = running.session()
    name = f"logged-{count}-{fails}"
    make_function(session, name, PROGRAM)
    response = session.client("lambda").invoke(
        FunctionName=name, LogType="Tail", Payload=json.dumps({"lines": count, "fails": fails})
    )
    log = base64.b64decode(response.get("LogResult", "")).decode()

    assert sum(line.startswith("line ") for line in log.splitlines()) == count
    assert ("FunctionError" in response) is fails
