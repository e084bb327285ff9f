"""The seconds that a split waits by its own rules, in simulated time: AWS changes its resources at once."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

from signalbox.queues import QueueName
from signalbox.splitting.model.observed_state import TargetState, Timings
from signalbox.splitting.model.split import Phase
from tests.unit.splitting.control.control_stage import APP, MEMES, ORDERS, ControlStage

SETTINGS = {
    "AWS": Timings(settle=timedelta(seconds=12), empty_for=timedelta(seconds=60)),
    "local": Timings(settle=timedelta(seconds=7), empty_for=timedelta(seconds=3)),
}
"""The defaults of `split_timeout_seconds` and `split_empty_seconds`, and those of a local stage."""
NEVER, LONG_AGO, NOW = "no message", "messages, the last 5 minutes before", "messages until then"
IDLE_SECONDS = 300
SCHEDULE_SECONDS = 60
LIMIT_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Waits:
    """The waits of one session, in seconds: until it is ready, and from its end on."""

    settings: str
    queue: QueueName
    use: str
    ready: int
    back: int
    """Until the target reads the original."""
    over: int
    """Until a split of the target can begin again."""


def calculate() -> Iterator[Waits]:
    """Yield the waits of each case."""
    for settings, timings in SETTINGS.items():
        for queue in (MEMES, ORDERS):
            for use in (NEVER, LONG_AGO, NOW):
                yield _waits(settings, timings, queue, use)


def _waits(settings: str, timings: Timings, queue: QueueName, use: str) -> Waits:
    stage = _stage(queue, timings)
    stage.start()
    ready = _seconds(stage, lambda: stage.split().sessions[0].phase is Phase.READY)  # type: ignore[union-attr]
    _pass(stage, IDLE_SECONDS)
    if use != NEVER:
        _use(stage, queue)
    if use == LONG_AGO:
        _pass(stage, IDLE_SECONDS)
    stage.stop()
    back = _seconds(stage, lambda: stage.targets.states[APP] is TargetState.ORIGINAL)
    over = back + _seconds(stage, lambda: stage.split() is None)
    return Waits(settings, queue, use, ready, back, over)


def _stage(queue: QueueName, timings: Timings) -> ControlStage:
    stage = ControlStage(queue)
    stage.timings = timings
    return stage


def _use(stage: ControlStage, queue: QueueName) -> None:
    """Record that the session and the deployed consumer have been sent messages, which they have consumed."""
    split = stage.split()
    assert split is not None
    for name in (stage.session_queue(original=queue), split.queues[0].deployed):
        stage.memory.uses.extend(name, until=stage.time.now() + timedelta(seconds=10))


def _pass(stage: ControlStage, seconds: int) -> None:
    for second in range(seconds):
        stage.pass_time(1, alive=["ann"])
        if second % SCHEDULE_SECONDS == 0:
            stage.loop.wake_all(stage.task_time())


def _seconds(stage: ControlStage, is_so: Callable[[], bool]) -> int:
    for second in range(LIMIT_SECONDS):
        if is_so():
            return second
        stage.pass_time(1)
        if second % SCHEDULE_SECONDS == 0:
            stage.loop.wake_all(stage.task_time())
    raise AssertionError(f"not within {LIMIT_SECONDS} s")
