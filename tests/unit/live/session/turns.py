"""Actors that take turns: between any two of their steps another may take one, and any step may be an actor's last."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

DEADLINE_SECONDS = 20


class Killed(BaseException):
    """The actor's time is over, in the middle of something."""


@dataclass(eq=False)
class _Actor:
    act: Callable[[], None]
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    is_done: bool = False
    error: BaseException | None = None


@dataclass
class Turns:
    """Runs one actor at a time; `choices` say whose turn it is, and who is killed in its step."""

    choices: Iterator[tuple[int, bool]]
    _actors: list[_Actor] = field(default_factory=list)
    _back: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _local: threading.local = field(default_factory=threading.local)
    _is_last: bool = False

    def step(self) -> None:
        """Let others have their turns, before what an actor does next. Outside of `run` nothing happens."""
        actor: _Actor | None = getattr(self._local, "actor", None)
        if actor is None:
            return
        self._back.release()
        actor.turn.acquire()
        if self._is_last:
            self._is_last = False
            raise Killed

    def run(self, *acts: Callable[[], None]) -> None:
        """Run actors until all are done. Whoever is killed begins again: what it does can be done twice."""
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
        self._is_last = False  # nobody is killed before anything was done
        try:
            self._again(actor)
        except BaseException as error:  # noqa: BLE001 - told by whoever runs
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
