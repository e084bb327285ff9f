"""Calls to a queue that may be new: SQS may not know it for a second or more after it was created.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from signalbox.errors import EffectFailed, EffectRefused

PAUSES = (0.25, 0.5, 1.0, 1.0, 1.0)  # seconds before each repetition

Answer = TypeVar("Answer")


class QueueTooNew(EffectFailed):
    """Raised when a service does not find a queue that was created just before."""


@contextmanager
def found_late(refusal: str) -> Iterator[None]:
    """Raise `QueueTooNew` for an `EffectRefused` whose text has the service's `refusal` of a queue that it misses."""
    try:
        yield
    except EffectRefused as error:
        if refusal in str(error):
            raise QueueTooNew(str(error)) from error
        raise


def when_usable(call: Callable[[], Answer], *, missing: type[Exception], sleep: Callable[[float], None]) -> Answer:
    """Return the result of a call; repeat it for up to 3.75 seconds while it raises `missing`, then raise that."""
    for pause in PAUSES:
        try:
            return call()
        except missing:
            sleep(pause)
    return call()
