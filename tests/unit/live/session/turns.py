"""Actors that take turns: any interleaving of their steps, and a kill in any step."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

DEADLINE_SECONDS = 20


class Killed(BaseException):
    """Raised in an actor that is killed in a step."""


@dataclass(eq=False)
class _Actor:
    act: Callable[[], None]
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    is_done: bool = False
    error: BaseException | None = None


@dataclass
class Turns:
    """Runs one actor at a time; `choices` select the actor, and whether it is killed in its step."""

    choices: Iterator[tuple[int, bool]]
    _actors: list[_Actor] = field(default_factory=list)
    _back: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _local: threading.local = field(default_factory=threading.local)
    _is_last: bool = False

    def step(self) -> None:
        """Yield to the other actors before an actor's next step; a no-op outside of `run`."""
        actor: _Actor | None = getattr(self._local, "actor", None)
        if actor is None:
            return
        self._back.release()
        actor.turn.acquire()
        if self._is_last:
            self._is_last = False
            raise Killed

    def run(self, *acts: Callable[[], None]) -> None:
        """Run actors until all are done. A killed actor starts again: its steps may be executed twice."""
        self._actors = [_Actor(act) for act in acts]
        threads = [threading.Thread(target=self._live, args=(actor,), daemon=True) for actor in self._actors]
        for thread in threads:
            thread.start()
        while waiting := [actor for actor in self._actors if not actor.is_done]:
            place, self._is_last = next(self.choices, (0, False))
            waiting[place % len(waiting)].turn.release()
            assert self._back.acquire(timeout=DEADLINE_SECONDS)
        for thread in threads:
            thread.join()
        for actor in self._actors:
            if actor.error is not None:
                raise actor.error

    def _live(self, actor: _Actor) -> None:
        self._local.actor = actor
        actor.turn.acquire()
        self._is_last = False  # no actor is killed before its first step
        try:
            self._again(actor)
        except BaseException as error:  # noqa: BLE001 - raised again by `run`
            actor.error = error
        finally:
            actor.is_done = True
            self._back.release()

    def _again(self, actor: _Actor) -> None:
        while True:
            try:
                actor.act()
            except Killed:
                continue
            else:
                return
