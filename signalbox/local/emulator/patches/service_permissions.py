"""Patch: calls on an ECS service need the permission on the service.

AWS checks `DescribeServices` and `UpdateService` on the service, `service/CLUSTER/NAME`; MiniStack checks them on the
cluster. (Service authorization reference: actions, resources and condition keys for Amazon Elastic Container Service.)
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original

RESOURCE = "ministack.core.iam_actions:extract_resource_arn"
TARGET = "x-amz-target"
DESCRIBE = "DescribeServices"
OF_A_SERVICE = (DESCRIBE, "UpdateService", "CreateService", "DeleteService")


def with_services(resource: Callable[..., str]) -> Callable[..., str]:
    """Return a `resource` that is the service's ARN for calls on one service."""

    def resource_or_service(service: str, *request: Any) -> str:  # noqa: ANN401 - MiniStack has no types
        found = resource(service, *request)
        _, _, headers, body, _, region, account = request
        action = headers.get(TARGET, "").rpartition(".")[2]
        if service != "ecs" or action not in OF_A_SERVICE:
            return found
        name = _named(json.loads(body), action)
        return f"arn:aws:ecs:{region}:{account}:service/{name}" if name else found

    return resource_or_service


def _named(request: Mapping[str, Any], action: str) -> str | None:
    """Return `CLUSTER/NAME` of the service in a request; None if there are several."""
    names = request["services"] if action == DESCRIBE else [request.get("service") or request.get("serviceName")]
    cluster = (request.get("cluster") or "default").rpartition("/")[2]
    return f"{cluster}/{str(names[0]).rpartition('/')[2]}" if len(names) == 1 else None


PATCH = Patch(
    sources={RESOURCE: "82f51700695c62fd"}, replacements=lambda: {RESOURCE: with_services(original(RESOURCE))}
)
