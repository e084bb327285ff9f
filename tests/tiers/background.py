"""Runs a command at a low priority: `python -m tests.tiers.background COMMAND…`.

Linux may schedule by session (autogroup, sched(7)): niceness then counts among the processes of one session only. So
the command gets a session of its own, whose niceness is set, too: to a third of the share of others, since tests wait
for seconds only. Ctrl-C does not reach that session and is forwarded.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

NICENESS, SESSION_NICENESS = 19, 5
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AUTOGROUP = Path("/proc/self/autogroup")
# Linux changes the niceness of one session in a tenth of a second, unless the user is root.
ATTEMPTS, ATTEMPT_SECONDS = 20, 0.1


def main(command: Sequence[str]) -> int:
    """Run the command and return its exit status."""
    forwarded = [number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN]  # as nohup has it
    # Until the handlers are set, a signal waits.
    signal.pthread_sigmask(signal.SIG_BLOCK, forwarded)
    process = subprocess.Popen(command, preexec_fn=_give_way)  # noqa: PLW1509 - this process has one thread
    for number in forwarded:
        signal.signal(number, lambda received, _: os.killpg(process.pid, received))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, forwarded)
    return process.wait()


def _give_way() -> None:
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    os.nice(NICENESS)
    for _ in range(ATTEMPTS):
        try:
            AUTOGROUP.write_text(str(SESSION_NICENESS))
        except BlockingIOError:
            time.sleep(ATTEMPT_SECONDS)
        except OSError:  # the kernel schedules without sessions
            return
        else:
            return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
