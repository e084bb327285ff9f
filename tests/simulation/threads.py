"""Thread pools whose threads are tasks of the kernel."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Self

from tests.simulation.kernel import Kernel, Killed


class Pending:
    """The future result of a task; `result` waits for it."""

    def __init__(self, kernel: Kernel, work: Callable[[], Any]) -> None:
        self.kernel = kernel
        self._outcome: Any = None
        self._error: BaseException | None = None
        self._is_done = False
        self._waiting: list[Any] = []
        starter = kernel.current
        assert starter is not None, "threads start in tasks"
        kernel.spawn(starter.process, kernel.next_key(), partial(self._run, work))

    def _run(self, work: Callable[[], Any]) -> None:
        try:
            self._outcome = work()
        except Killed:
            raise
        except BaseException as error:  # noqa: BLE001 - as in a pool, `result` raises it
            self._error = error
        self._is_done = True
        for task in self._waiting:
            self.kernel.at(self.kernel.now, partial(self.kernel.resume, task))

    def done(self) -> bool:
        return self._is_done

    def result(self) -> Any:
        error = self.exception()
        if error is not None:
            raise error
        return self._outcome

    def exception(self) -> BaseException | None:
        self.await_end()
        return self._error

    def await_end(self) -> None:
        while not self._is_done:
            self._waiting.append(self.kernel.current)
            self.kernel.pause()


class Pool:
    """`ThreadPoolExecutor`, without its limit."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._begun: list[Pending] = []

    def submit(self, function: Callable[..., Any], /, *values: Any, **named: Any) -> Pending:
        pending = Pending(self.kernel, partial(function, *values, **named))
        self._begun.append(pending)
        return pending

    def map(self, function: Callable[..., Any], *values: Iterable[Any]) -> Iterator[Any]:
        begun = [self.submit(function, *arguments) for arguments in zip(*values, strict=False)]
        return iter([pending.result() for pending in begun])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        wait(self._begun)

    def shutdown(self, **_: object) -> None:
        wait(self._begun)


def wait(pending: Iterable[Pending]) -> None:
    for one in pending:
        one.await_end()


class TaskLock:
    """`threading.Lock` among tasks."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._is_held = False
        self._waiting: list[Any] = []

    def __enter__(self) -> bool:
        while self._is_held:
            self._waiting.append(self.kernel.current)
            self.kernel.pause()
        self._is_held = True
        return True

    def __exit__(self, *_: object) -> None:
        self._is_held = False
        if self._waiting:
            task = self._waiting.pop(0)
            self.kernel.at(self.kernel.now, partial(self.kernel.resume, task))
