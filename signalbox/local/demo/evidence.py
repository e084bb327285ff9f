"""The demo's evidence: what each capability does on the running stage, as rows of a table."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from signalbox.clients.deployment import Deployment
from signalbox.errors import UnavailableError
from signalbox.flows.run import Run
from signalbox.flows.splitting import SHARED
from signalbox.flows.trial import Journal, Trial
from signalbox.local.demo.exchange import show_exchange
from signalbox.local.demo.history import show_history
from signalbox.local.demo.kubernetes import show_kubernetes
from signalbox.local.demo.live import show_live
from signalbox.local.demo.rendezvous import show_rendezvous
from signalbox.local.demo.splitting import show_splitting
from signalbox.local.progress import step
from signalbox.verify.report import Row, TrialOutcome

# The order of the rows.
CAPABILITIES = ("rendezvous", "splitting", "exchange", "live", "history")
EVENTS_SECONDS = 600.0
Show = Callable[[Trial], None]


def first_evidence(deployment: Deployment) -> Sequence[Row]:
    """Run the shortest demonstration, a client and a proxy of rendezvous, and return its rows."""
    shown = {"rendezvous": show_rendezvous} if "rendezvous" in deployment.capabilities else {}
    return _rows(_trial(deployment), shown)


def evidence(deployment: Deployment, *, build: bool = False) -> Sequence[Row]:
    """Run the other demonstrations, and return their rows. Raises `UnavailableError` if one fails.

    Splitting mostly waits, so the other capabilities are shown meanwhile. History reports on all of them: Spark starts
    early, and its jobs run while the splits end. Without `build`, a Kubernetes cluster must have been built.
    """
    shown: dict[str, Show] = {}
    if "exchange" in deployment.capabilities:
        shown["exchange and live"] = _show_exchange_and_live
    if "splitting" in deployment.capabilities:
        shown |= {"splitting": show_splitting, "splitting on Kubernetes": partial(show_kubernetes, build=build)}
    if "history" in deployment.capabilities and len(deployment.capabilities) > 1:  # alone it has no events
        shown["history"] = partial(show_history, wait_for_events=_wait_for_events)
    return _rows(_trial(deployment), shown)


def _trial(deployment: Deployment) -> Trial:
    return Trial(deployment, Journal(watch=step))


def _rows(trial: Trial, shown: Mapping[str, Show]) -> Sequence[Row]:
    Run(trial, {name: partial(show, trial) for name, show in shown.items()}).wait()
    _raise_failures(trial)
    return sorted(trial.journal.rows, key=lambda row: CAPABILITIES.index(row.capability))


def _show_exchange_and_live(trial: Trial) -> None:
    show_exchange(trial)
    if "live" in trial.deployment.capabilities:
        show_live(trial)


def _wait_for_events(trial: Trial) -> None:
    """Wait until the others have done what history counts: the end of the splits takes longer."""

    def are_there() -> bool:
        _raise_failures(trial)
        has_shared = any(row.what == SHARED for row in trial.journal.rows)
        parts = trial.deployment.capabilities
        return ("exchange and live" in trial.ended or "exchange" not in parts) and (
            has_shared or "splitting" not in parts
        )

    trial.wait_until(are_there, "the other demonstrations have had their messages", seconds=EVENTS_SECONDS)


def _raise_failures(trial: Trial) -> None:
    failed = [
        f"{row.capability}: {row.what}: {row.detail}"
        for row in trial.journal.rows
        if row.outcome is TrialOutcome.FAILED
    ]
    if failed:
        raise UnavailableError("\n".join(failed))
