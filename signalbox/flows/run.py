"""A run of several flows side by side, each in a thread of its own."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from signalbox.flows.trial import RunStopped, Trial

# The longest call of a flow without a look at the end: a client's receive, with its pauses.
STOP_SECONDS = 45.0
LOOK_SECONDS = 0.2
# Half of the time after which another run considers this one dead: the cleanup needs some of it.
LONGEST_SECONDS = 1_800.0
Flow = Callable[[], None]


@dataclass(slots=True)
class Run:
    """A run on a stage: `flows` by name."""

    trial: Trial
    flows: Mapping[str, Flow]
    began: float = field(default_factory=time.monotonic)
    _threads: list[threading.Thread] = field(default_factory=list)

    def wait(self) -> None:
        """Start the flows and wait for their ends, at most `LONGEST_SECONDS`."""
        for name, flow in self.flows.items():
            # Daemons: an interrupted command does not wait for a call in progress.
            thread = threading.Thread(target=self._follow, args=(name, flow), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        while alive := [thread.name for thread in self._threads if thread.is_alive()]:
            if time.monotonic() - self.began > LONGEST_SECONDS:
                for name in alive:
                    self.trial.journal.fail(name, "the flow", TimeoutError(f"did not end within {LONGEST_SECONDS:g} s"))
                self.stop()
                return
            time.sleep(LOOK_SECONDS)  # signals are handled between two looks

    def stop(self) -> None:
        """End the flows after their current calls."""
        self.trial.journal.stopping.set()
        self.trial.has_published.set()
        deadline = time.monotonic() + STOP_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _follow(self, name: str, flow: Flow) -> None:
        try:
            flow()
        except RunStopped:
            return  # its reason is a row
        except Exception as error:  # noqa: BLE001 - every failure is a row, and the cleanup follows
            self.trial.journal.fail(name, "the flow", error)
        finally:
            self.trial.ended.add(name)
