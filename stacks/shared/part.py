"""The one shape of the capabilities' constructs: what each gets, and what the stacks read of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.settings.config import Config
from stacks.shared.function import Function, Surroundings
from stacks.shared.schedules import Task
from stacks.state_stack import State


class Part(Construct):
    """The resources of a capability without its data; `stacks/grants/<capability>.py` has their permissions."""

    functions: Mapping[str, Function]
    queues: Sequence[sqs.IQueue]
    """The queues whose messages are the backlog."""

    def tasks(self, config: Config) -> dict[str, Task]:
        """Return the scheduled tasks by name."""
        raise NotImplementedError

    def outputs(self, state: State, config: Config) -> dict[str, str]:
        """Return the outputs of the stack by name."""
        raise NotImplementedError


Made = TypeVar("Made", bound=Part)


def composed(
    scope: Construct,
    name: str,
    make: Callable[..., Made],
    grant: Callable[..., None],
    *,
    around: Surroundings,
    **own: object,
) -> Made:
    """Create the part of a capability, and grant its permissions."""
    part = make(scope, name, around=around, **own)
    grant(part, state=around.state, lake=around.lake, config=around.config)
    return part
