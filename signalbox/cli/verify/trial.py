"""A run of `signalbox verify` on a stage: the names of its resources, and sessions that count their calls."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import boto3

from signalbox.cli.shared.deployment import Deployment
from signalbox.cli.shared.stage import say
from signalbox.flows.trial import Journal, Meter, Trial
from signalbox.verify.names import RunNames

if TYPE_CHECKING:
    from signalbox.aws.rendezvous.credentials import ClientCredentials


@dataclass(frozen=True, slots=True)
class MeteredDeployment(Deployment):
    """A deployment whose sessions count their calls."""

    meter: Meter = field(default_factory=Meter)

    def session(self) -> boto3.Session:
        """Return a counting session for this deployment."""
        return self.meter.attach(Deployment.session(self))

    def session_of(self, credentials: "ClientCredentials") -> boto3.Session:
        """Return a counting session with another user's access key."""
        return self.meter.attach(Deployment.session_of(self, credentials))


@dataclass(frozen=True, slots=True)
class NamedTrial(Trial):
    """A run whose resources have names of their own."""

    names: RunNames = field(kw_only=True)

    @classmethod
    def of(cls, deployment: Deployment, names: RunNames) -> "NamedTrial":
        """Return a run on a deployment, whose calls it counts."""
        fields = {name: getattr(deployment, name) for name in Deployment.__dataclass_fields__}
        metered = MeteredDeployment(**fields)
        return cls(metered, Journal(say), metered.meter, names=names)
