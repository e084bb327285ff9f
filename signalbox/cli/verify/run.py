"""A run of all capabilities side by side, its cleanup and its report."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from signalbox import __version__
from signalbox.cli.exchange.stage import client_of
from signalbox.cli.shared.stage import say
from signalbox.cli.verify.cleanup import clean
from signalbox.cli.verify.exchange import verify_exchange
from signalbox.cli.verify.history import verify_history
from signalbox.cli.verify.live import verify_live
from signalbox.cli.verify.rendezvous import verify_rendezvous
from signalbox.cli.verify.splitting import verify_splitting
from signalbox.cli.verify.sqs import verify_sqs
from signalbox.cli.verify.trial import Meter, MeteredDeployment, RunStopped, Trial
from signalbox.local.demo.exchange import exchange_user
from signalbox.local.files import checkout_modules
from signalbox.sarracenia.rights.names import parse_user_name
from signalbox.sarracenia.rights.permissions import Role
from signalbox.verify.bill import bill, units
from signalbox.verify.report import Answer, Report

# The longest call of a flow without a look at the end: a client's receive, with its pauses.
STOP_SECONDS = 45.0
LOOK_SECONDS = 0.2
# Half of the time after which another run considers this one dead: the cleanup needs some of it.
LONGEST_SECONDS = 1_800.0
Flow = Callable[[Trial], None]


@dataclass(slots=True)
class Run:
    """A run on a stage: `flows` by name, one thread each."""

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
                    self.trial.journal.fail(name, "the flow", TimeoutError(f"no end after {LONGEST_SECONDS:g} s"))
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

    def report(self, *, left: Sequence[str]) -> Report:
        """Return the report; `left` names what could not be deleted."""
        trial = self.trial
        return Report(
            run=trial.names.run,
            stage=_description(trial.deployment),
            rows=sorted(trial.journal.rows, key=lambda row: list(self.flows).index(FLOW_OF.get(row.capability, ""))),
            answers=trial.journal.answers,
            price=_price(trial.meter),
            left=left,
            seconds=time.monotonic() - self.began,
            is_complete=not trial.journal.stopping.is_set(),
        )

    def clean(self) -> list[str]:
        """Delete all resources of the run; return what is left."""
        say(f"deleting everything with {self.trial.names.run} in its name")
        return clean(self.trial.deployment, self.trial.names.run)

    def _follow(self, name: str, flow: Flow) -> None:
        try:
            flow(self.trial)
        except RunStopped:
            return  # its reason is a row
        except Exception as error:  # noqa: BLE001 - every failure is a row, and the cleanup follows
            self.trial.journal.fail(name, "the flow", error)
        finally:
            self.trial.ended.add(name)


# The flow in which the rows of a capability arise.
FLOW_OF = {
    "rendezvous": "rendezvous",
    "splitting": "splitting",
    "exchange": "exchange",
    "live": "exchange",
    "history": "history",
    "SQS": "SQS",
}


def flows(*, with_jobs: bool) -> dict[str, Flow]:
    """Return the flows by name."""
    return {
        "rendezvous": verify_rendezvous,
        "splitting": verify_splitting,
        "exchange": _exchange_and_live,
        "history": partial(verify_history, with_jobs=with_jobs),
        "SQS": verify_sqs,
    }


def _exchange_and_live(trial: Trial) -> None:
    deployment, names = trial.deployment, trial.names
    with ExitStack() as stack:
        try:
            with trial.journal.step("exchange", "two users are made"):
                user, _ = (
                    stack.enter_context(exchange_user(deployment, parse_user_name(name), role))
                    for name, role in ((names.user, Role.SOURCE), (names.reader, Role.SUBSCRIBER))
                )
                administrator = client_of(deployment)
            verify_exchange(trial, user)
        finally:
            trial.has_published.set()
        verify_live(trial, user, administrator)


def _description(deployment: MeteredDeployment) -> dict[str, Answer]:
    where = "AWS" if deployment.endpoint_url is None else "local"
    return {"in": where, "region": deployment.region, "signalbox": __version__}


def _price(meter: Meter) -> dict[str, Answer]:
    with checkout_modules():
        from glue_jobs.transforms.prices import PRICES, PRICES_DATE, USAGES
    used = [(usage.capability, usage.what, usage.item, usage.most) for usage in USAGES]
    price = bill(units(meter.calls, meter.facts, used), PRICES)
    return {**price, "prices_of": f"{PRICES_DATE}", "calls": sum(meter.calls.values())}
