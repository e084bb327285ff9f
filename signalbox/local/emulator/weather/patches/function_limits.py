"""Patch: a stack's reserved concurrency and recursive-loop setting of functions count, and the account's limit.

MiniStack ignores both properties of `AWS::Lambda::Function`, and takes the account's limit from the machine's memory.
"""

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original

PROVISIONERS = "ministack.services.cloudformation.provisioners"
CREATE, UPDATE = f"{PROVISIONERS}:_lambda_create", f"{PROVISIONERS}:_lambda_update"
RESOURCES = f"{PROVISIONERS}:_RESOURCE_HANDLERS"
FUNCTIONS = "ministack.services.lambda_svc:_functions"
ACQUIRE = "ministack.services.lambda_svc:_acquire_execution_slot"
ACCOUNT_LIMIT = "ministack.services.lambda_svc:_ACCOUNT_CONCURRENCY_CAP"
TYPE = "AWS::Lambda::Function"

Functions = Mapping[str, MutableMapping[str, Any]]
Provision = Callable[..., tuple[str, Any]]


def with_limits(provision: Provision, functions: Functions, *, properties_at: int) -> Provision:
    """Return a `provision` of functions that records their limits; the properties are its argument at this place."""

    def provision_with_limits(*arguments: Any, **named: object) -> tuple[str, Any]:  # noqa: ANN401 - MiniStack's
        name, attributes = provision(*arguments, **named)
        properties = arguments[properties_at]
        reserved = properties.get("ReservedConcurrentExecutions")
        functions[name]["concurrency"] = None if reserved is None else int(reserved)
        functions[name]["recursive_loop"] = properties.get("RecursiveLoop", "Terminate")
        return name, attributes

    return provision_with_limits


def patch(account_concurrency: int) -> Patch:
    """Return the patch for an account with this limit."""

    def replacements() -> Mapping[str, object]:
        functions, resources = original(FUNCTIONS), original(RESOURCES)
        create = with_limits(original(CREATE), functions, properties_at=1)
        update = with_limits(original(UPDATE), functions, properties_at=2)
        handlers = {**resources[TYPE], "create": create, "update": update}
        return {
            CREATE: create,
            UPDATE: update,
            RESOURCES: {**resources, TYPE: handlers},
            ACCOUNT_LIMIT: account_concurrency,
        }

    return Patch(
        sources={
            CREATE: "8b2cf80e961d92ee",
            UPDATE: "4855410e37d7a80d",
            ACQUIRE: "ed3b38149e2e14aa",
        },
        replacements=replacements,
    )
