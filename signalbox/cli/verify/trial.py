"""A run of `signalbox verify` on a stage, with the names of its resources."""

from dataclasses import dataclass, field

from signalbox.flows.trial import Trial
from signalbox.verify.names import RunNames


@dataclass(frozen=True, slots=True)
class NamedTrial(Trial):
    """A run whose resources have names of their own."""

    names: RunNames = field(kw_only=True)
