"""The demo's evidence: what each capability does on the running stage, as rows of a table."""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from signalbox.local.demo.exchange import exchange_rows
from signalbox.local.demo.history import history_rows
from signalbox.local.demo.kubernetes import kubernetes_rows
from signalbox.local.demo.live import live_rows
from signalbox.local.demo.rendezvous import rendezvous_rows
from signalbox.local.demo.splitting import DELIVERIES, splitting_rows

if TYPE_CHECKING:
    from signalbox.cli.shared.deployment import Deployment

# The order of the rows.
CAPABILITIES = ("rendezvous", "splitting", "exchange", "live", "history")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One row of the demo's table."""

    capability: str
    what: str
    value: str


Rows = Callable[["Deployment"], Iterable[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Demonstration:
    """What shows one capability."""

    capability: str
    rows: Rows
    counted: str | None = None
    """The row at which history has all events that its own demonstration counts; None: the last one."""


class Lane:
    """Demonstrations one after another, in a thread of their own.

    The thread ends with the process: Ctrl-C does not wait for it, and the next demo removes what it left.
    """

    def __init__(self, deployment: "Deployment", demonstrations: Sequence[Demonstration]) -> None:
        self._deployment, self._demonstrations = deployment, demonstrations
        self._counted, self._rows, self._error = threading.Event(), list[Evidence](), list[BaseException]()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait_for_events(self) -> None:
        """Wait until history has the events. Raises the error of a demonstration that failed."""
        self._counted.wait()
        self._raise()

    def rows(self) -> list[Evidence]:
        """Wait for the end, and return the rows. Raises the error of a demonstration that failed."""
        self._thread.join()
        self._raise()
        return self._rows

    def _run(self) -> None:
        try:
            for demonstration in self._demonstrations:
                self._show(demonstration)
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            self._error.append(error)
        finally:
            self._counted.set()

    def _show(self, demonstration: Demonstration) -> None:
        for what, value in demonstration.rows(self._deployment):
            self._rows.append(Evidence(demonstration.capability, what, value))
            if what == demonstration.counted:
                self._counted.set()

    def _raise(self) -> None:
        if self._error:
            raise self._error[0]


def first_evidence(deployment: "Deployment") -> list[Evidence]:
    """Run the shortest demonstration, a client and a proxy of rendezvous, and return its rows."""
    return Lane(deployment, (Demonstration("rendezvous", rendezvous_rows),)).rows()


def evidence(deployment: "Deployment", *, build: bool = False) -> list[Evidence]:
    """Run the other demonstrations, and return their rows.

    Splitting mostly waits, so the other capabilities are shown meanwhile. History reports on all of them: Spark starts
    early, and its jobs run while the splits end. Without `build`, a Kubernetes cluster must have been built.
    """
    short = Lane(deployment, (Demonstration("exchange", exchange_rows), Demonstration("live", live_rows)))
    splitting = Lane(deployment, (Demonstration("splitting", splitting_rows, counted=DELIVERIES),))
    on_kubernetes = Lane(deployment, (Demonstration("splitting", partial(kubernetes_rows, build=build)),))

    def wait_for_events() -> None:
        short.wait_for_events()
        splitting.wait_for_events()

    history = Lane(deployment, (Demonstration("history", partial(history_rows, wait_for_events=wait_for_events)),))
    shown = [row for lane in (short, splitting, on_kubernetes, history) for row in lane.rows()]
    return sorted(shown, key=lambda row: CAPABILITIES.index(row.capability))
