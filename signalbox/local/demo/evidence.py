"""The demo's evidence: what each capability does on the running stage, as rows of a table."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from signalbox.local.demo.exchange import exchange_rows
from signalbox.local.demo.history import history_rows
from signalbox.local.demo.kubernetes import kubernetes_rows
from signalbox.local.demo.live import live_rows
from signalbox.local.demo.rendezvous import rendezvous_rows
from signalbox.local.demo.splitting import splitting_rows

if TYPE_CHECKING:
    from signalbox.cli.shared.deployment import Deployment


@dataclass(frozen=True, slots=True)
class Evidence:
    """One row of the demo's table."""

    capability: str
    what: str
    value: str


Demonstration = Callable[["Deployment"], Iterable[tuple[str, str]]]


def evidence(deployment: "Deployment", *, build: bool = False) -> Iterator[Evidence]:
    """Run all demonstrations one after another; yield their rows.

    A Kubernetes cluster that is not built yet is built only with `build`. History comes last: it reports on all others.
    """
    demonstrations: tuple[tuple[str, Demonstration], ...] = (
        ("rendezvous", rendezvous_rows),
        ("splitting", splitting_rows),
        ("splitting", partial(kubernetes_rows, build=build)),
        ("exchange", exchange_rows),
        ("live", live_rows),
        ("history", history_rows),
    )
    for capability, demonstration in demonstrations:
        for what, value in demonstration(deployment):
            yield Evidence(capability, what, value)
