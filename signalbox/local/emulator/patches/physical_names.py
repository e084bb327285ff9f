"""Patch: a stack that is deleted and created again has other generated names, as on AWS.

CloudFormation makes the physical name of a resource from the stack's name, the logical id and a random part. The part
of MiniStack depends on the first two alone, so that functions of a redeployed stack would have their previous ARNs.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original

PHYSICAL_NAME = "ministack.services.cloudformation.provisioners:_physical_name"
NAME_SEED = "ministack.services.cloudformation.provisioners:_NAME_SEED"
STACKS = "ministack.services.cloudformation:_stacks"

Stacks = Mapping[str, Mapping[str, Any]]


def with_stack_ids(physical_name: Callable[..., str], seed: "ContextVar[str]", stacks: Stacks) -> Callable[..., str]:
    """Return a `physical_name` whose names differ between two stacks of one name, and not between updates of one."""

    def name_of_stack(stack_name: str, logical_id: str, **options: Any) -> str:  # noqa: ANN401 - MiniStack's options
        stack = stacks.get(stack_name)
        if stack is None or seed.get():  # a replacement has a seed of its own
            return physical_name(stack_name, logical_id, **options)
        token = seed.set(str(stack["StackId"]))
        try:
            return physical_name(stack_name, logical_id, **options)
        finally:
            seed.reset(token)

    return name_of_stack


PATCH = Patch(
    sources={PHYSICAL_NAME: "aeef5b394ad26e50"},
    replacements=lambda: {
        PHYSICAL_NAME: with_stack_ids(original(PHYSICAL_NAME), original(NAME_SEED), original(STACKS))
    },
)
