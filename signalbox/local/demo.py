"""The demo: each capability shows on the running stage that it works, with evidence that can be looked at again."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from signalbox.cli.deployment import Deployment


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that was seen to happen."""

    capability: str
    what: str
    value: str


Demonstration = Callable[["Deployment"], Iterable[Evidence]]
DEMONSTRATIONS: tuple[Demonstration, ...] = ()
"""One function per capability, in the order in which they are shown."""


def evidence(deployment: "Deployment") -> Iterator[Evidence]:
    """Let every capability show itself, one after the other."""
    for demonstration in DEMONSTRATIONS:
        yield from demonstration(deployment)
