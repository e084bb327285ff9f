"""The flows of a run of `signalbox verify`, and its report."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial

from signalbox import __version__
from signalbox.cli.verify.exchange import verify_exchange
from signalbox.cli.verify.history import verify_history
from signalbox.cli.verify.live import verify_live
from signalbox.cli.verify.rendezvous import verify_rendezvous
from signalbox.cli.verify.splitting import verify_splitting
from signalbox.cli.verify.sqs import verify_sqs
from signalbox.cli.verify.trial import NamedTrial
from signalbox.clients.exchange.client import stage_client
from signalbox.flows.exchange import exchange_user
from signalbox.flows.run import Flow, Run
from signalbox.flows.trial import Meter
from signalbox.history.prices import PRICES, PRICES_DATE, USAGES
from signalbox.sarracenia.rights.names import parse_user_name
from signalbox.sarracenia.rights.permissions import Role
from signalbox.verify.bill import bill, units
from signalbox.verify.report import Answer, Report

# The flow in which the rows of a capability arise.
FLOW_OF = {
    "rendezvous": "rendezvous",
    "splitting": "splitting",
    "exchange": "exchange",
    "live": "exchange",
    "history": "history",
    "SQS": "SQS",
}


def flows(trial: NamedTrial, *, with_jobs: bool) -> dict[str, Flow]:
    """Return the flows of the stage's capabilities by name."""
    found: dict[str, Flow] = {
        "rendezvous": partial(verify_rendezvous, trial),
        "splitting": partial(verify_splitting, trial),
        "exchange": partial(_exchange_and_live, trial),
        "history": partial(verify_history, trial, with_jobs=with_jobs),
    }
    parts = trial.deployment.capabilities
    return {name: flow for name, flow in found.items() if name in parts} | {"SQS": partial(verify_sqs, trial)}


def _exchange_and_live(trial: NamedTrial) -> None:
    deployment, names = trial.deployment, trial.names
    with ExitStack() as stack:
        try:
            with trial.journal.step("exchange", "two users are made"):
                user, _ = (
                    stack.enter_context(exchange_user(deployment, parse_user_name(name), role))
                    for name, role in ((names.user, Role.SOURCE), (names.reader, Role.SUBSCRIBER))
                )
                admin = stage_client(deployment.session().client("sqs"), deployment.outputs)
            verify_exchange(trial, user)
        finally:
            trial.has_published.set()
        if "live" in deployment.capabilities:
            verify_live(trial, user, admin)


def report(trial: NamedTrial, run: Run, *, left: Sequence[str]) -> Report:
    """Return the report of a run; `left` names what could not be deleted."""
    order = list(run.flows)
    return Report(
        run=trial.names.run,
        stage=_description(trial),
        rows=sorted(trial.journal.rows, key=lambda row: order.index(FLOW_OF.get(row.capability, row.capability))),
        answers=trial.journal.answers,
        price=_price(trial.meter),
        left=left,
        seconds=time.monotonic() - run.began,
        is_complete=not trial.journal.stopping.is_set(),
    )


def _description(trial: NamedTrial) -> dict[str, Answer]:
    where = "AWS" if trial.is_in_aws else "local"
    return {"in": where, "region": trial.deployment.region, "signalbox": __version__}


def _price(meter: Meter) -> dict[str, Answer]:
    used = [(usage.capability, usage.what, usage.item, usage.most) for usage in USAGES]
    price = bill(units(meter.calls, meter.facts, used), PRICES)
    return {**price, "prices_of": f"{PRICES_DATE}", "calls": sum(meter.calls.values())}
