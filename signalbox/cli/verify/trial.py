"""A run of `signalbox verify` on a stage: the names of its resources, and sessions that count their calls."""

from dataclasses import dataclass, field, replace

import boto3

from signalbox.cli.shared.stage import say
from signalbox.clients.deployment import Deployment
from signalbox.flows.trial import Journal, Meter, Trial
from signalbox.verify.names import RunNames


@dataclass(frozen=True, slots=True)
class NamedTrial(Trial):
    """A run whose resources have names of their own."""

    names: RunNames = field(kw_only=True)

    @classmethod
    def of(cls, deployment: Deployment, names: RunNames) -> "NamedTrial":
        """Return a run on a deployment, whose calls it counts."""
        meter = Meter()

        def watch(session: boto3.Session, place: str) -> None:
            deployment.watch(session, place)
            meter.attach(session)

        return cls(replace(deployment, watch=watch), Journal(say), meter, names=names)
