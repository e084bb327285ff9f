"""Patch: when a batch of a function has ended, its poller receives the next messages at once, not up to 50 ms later.

Messages that are sent while their function is busy wake MiniStack's poller in vain, and it then sleeps for 50 ms before
the next wake. A FIFO queue has one batch at a time here, so each of its batches waited for that. Lambda's pollers
receive the next messages at once.
"""

import threading
from collections.abc import Callable, Mapping
from types import SimpleNamespace

from signalbox.local.emulator.patches.patch import Patch, original

MINISTACK = "1.5.33"
LAMBDA = "ministack.services.lambda_svc"
LOOP, DISPATCH = f"{LAMBDA}:_poll_loop", f"{LAMBDA}:_dispatch_esm_batch"
GAP, TIME, WAKE = f"{LAMBDA}:_ESM_IDLE_WAKE_GAP_SECONDS", f"{LAMBDA}:time", f"{LAMBDA}:_esm_wake"


class Gap(float):
    """The seconds of the poller's sleep: a type of its own, since others sleep as long."""


class Wake:
    """The event that wakes the poller. The name that this replaces is set only when a batch has ended."""

    def __init__(self, wake: threading.Event) -> None:
        self._wake, self._ended = wake, threading.Event()

    def set(self) -> None:
        """Wake the poller, also from its sleep."""
        self._ended.set()
        self._wake.set()

    def clear(self) -> None:
        """Clear the event before a pass of the poller, which finds all earlier work."""
        self._ended.clear()
        self._wake.clear()

    def wait(self, seconds: float) -> bool:
        """Wait for work."""
        return self._wake.wait(seconds)

    def sleeping(self, sleep: Callable[[float], None]) -> Callable[[float], None]:
        """Return a `sleep` that ends with a batch if it is the poller's."""

        def sleep_or_wait(seconds: float) -> None:
            if isinstance(seconds, Gap):
                self._ended.wait(seconds)
            else:
                sleep(seconds)

        return sleep_or_wait


def _replacements() -> Mapping[str, object]:
    wake, time = Wake(original(WAKE)), vars(original(TIME))
    sleep = wake.sleeping(time["sleep"])
    return {GAP: Gap(original(GAP)), WAKE: wake, TIME: SimpleNamespace(**{**time, "sleep": sleep})}


PATCH = Patch(
    module=__name__,
    version=MINISTACK,
    sources={LOOP: "6a443090919adccf", DISPATCH: "b91ab76fad0bfaf7", GAP: None, TIME: None, WAKE: None},
    replacements=_replacements,
)
