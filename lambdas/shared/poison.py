"""Detection of poison: messages whose content stops or fails the process that reads it.

A message that was received often may be poison, or its functions were killed or could not reach a service. A forked
process reads it, with limited time and memory and without any service: the content alone decides how that process ends.
Docs: docs/decisions/0034-only-poison-dies.md
"""

import os
import resource
import signal
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NoReturn

from signalbox.errors import RejectedError, UnavailableError

Record = dict[str, Any]
Read = Callable[[Record], object]
"""Reads a record; raises `RejectedError` if it is invalid, which does not count as poison."""

# The receives from which a message is suspect. It is read alone at every fifth receive: on a machine without processor
# time the other four are for the function's own work.
SUSPECT_RECEIVES = 5
# A message has 1 MiB at most, and the slowest reader takes about 50 ms and 50 MB for that.
CPU_SECONDS, MEMORY_BYTES = 0.5, 192 * 1024 * 1024
# The process ends itself after this time, which proves nothing: it leaves the function time for its work.
LONGEST_SECONDS = 2.0
FAILED = 1
# Signals that do not come from the content: of a killer, and of the process to itself.
OF_OTHERS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGALRM)


def poison_of(records: Sequence[Record], read: Read) -> dict[str, str]:
    """Return the ids of the messages in a batch that are poison, each with the reason.

    Call this before other threads work: a forked process has the locks that they hold.
    """
    suspects = [one for one in records if _received(one) % SUSPECT_RECEIVES == 0]
    if not suspects or _harm(suspects, read) is None:
        return {}
    harms = {one["messageId"]: _harm([one], read) for one in suspects}
    return {message_id: harm for message_id, harm in harms.items() if harm is not None}


def is_suspect(record: Record) -> bool:
    """Return whether a message was received so often that it may be poison."""
    return _received(record) >= SUSPECT_RECEIVES


def fail_if_stuck(records: Sequence[Record], left: Collection[str]) -> None:
    """Raise `UnavailableError`, for the alarm on errors, if no message of a batch succeeds for the fifth time.

    The age of a standard queue leaves out messages that were received three times.
    """
    if len(left) == len(records) and any(map(is_suspect, records)):
        raise UnavailableError(f"none of {len(records)} messages was handled: the log has the errors")


def _received(record: Record) -> int:
    return int(record["attributes"].get("ApproximateReceiveCount", 1))


def _harm(records: Sequence[Record], read: Read) -> str | None:
    """Return how reading records ends a process badly; None if it does not, or if that is not known."""
    try:
        process = os.fork()
    except OSError:
        return None  # there is no memory or process left, which is not the fault of the content
    if process == 0:
        _read_and_exit(records, read)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if code == 0 or -code in OF_OTHERS:
        return None
    if code == FAILED:
        return "reading it fails by an error of the program, or needs too much memory"
    if -code == signal.SIGPROF:
        return f"reading it takes more than {CPU_SECONDS} s of processor time"
    return f"reading it ends the process with {signal.Signals(-code).name}"


def _read_and_exit(records: Sequence[Record], read: Read) -> NoReturn:
    code = FAILED
    try:
        _limit_itself()
        for record in records:
            try:
                read(record)
            except RejectedError:
                continue
        code = 0
    finally:
        os._exit(code)  # no handler of the parent may run


def _limit_itself() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_SECONDS)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # elsewhere the address space may exceed any limit from the start
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
