"""Patch: stacks may have access entries of EKS clusters, as on AWS.

MiniStack has access entries in its EKS, and no resource `AWS::EKS::AccessEntry` in its CloudFormation.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-eks-accessentry.html
"""

from collections.abc import Callable, Mapping
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original

TYPE = "AWS::EKS::AccessEntry"
HANDLERS = "ministack.services.cloudformation.provisioners:_RESOURCE_HANDLERS"
PROVISION = "ministack.services.cloudformation.provisioners:_provision_resource"
CREATE = "ministack.services.eks:_create_access_entry"
UPDATE = "ministack.services.eks:_update_access_entry"
DELETE = "ministack.services.eks:_delete_access_entry"
ERROR = 400

Properties = Mapping[str, Any]
Answer = tuple[int, Mapping[str, str], bytes]
Provisioned = tuple[str, dict[str, str]]


def handlers(
    *, create: Callable[..., Answer], update: Callable[..., Answer], delete: Callable[..., Answer]
) -> dict[str, Callable[..., Any]]:
    """Return the handlers of the resource type, from MiniStack's functions of the EKS API."""

    def created(logical_id: str, properties: Properties, _stack: str) -> Provisioned:
        body = _body(properties) | {"principalArn": properties["PrincipalArn"]}
        if "Type" in properties:
            body["type"] = properties["Type"]
        return _done(create(properties["ClusterName"], body), logical_id, properties)

    def updated(identifier: str, old: Properties, new: Properties, stack: str) -> Provisioned:
        if _key(old) != _key(new):
            replacement = created(identifier, new, stack)
            deleted(identifier, old)
            return replacement
        return _done(update(new["ClusterName"], new["PrincipalArn"], _body(new)), identifier, new)

    def deleted(_identifier: str, properties: Properties) -> None:
        delete(properties["ClusterName"], properties["PrincipalArn"])  # 404 if its cluster was deleted before

    return {"create": created, "update": updated, "delete": deleted}


def _body(properties: Properties) -> dict[str, Any]:
    return {"kubernetesGroups": properties.get("KubernetesGroups", []), "username": properties.get("Username", "")}


def _key(properties: Properties) -> tuple[object, ...]:
    """Return the properties whose change replaces the entry."""
    return tuple(properties.get(name) for name in ("ClusterName", "PrincipalArn", "Type"))


def _done(answer: Answer, logical_id: str, properties: Properties) -> Provisioned:
    status, _, body = answer
    if status >= ERROR:
        raise ValueError(f"{TYPE} {logical_id} failed: {body!r}")
    return f"{properties['PrincipalArn']}|{properties['ClusterName']}", {}


def _replacements() -> Mapping[str, object]:
    known = original(HANDLERS)
    known[TYPE] = handlers(create=original(CREATE), update=original(UPDATE), delete=original(DELETE))
    return {HANDLERS: known}  # the same object, since MiniStack's modules hold it


PATCH = Patch(
    sources={
        PROVISION: "3b8f01fb187141b6",
        CREATE: "8664adac3389341c",
        UPDATE: "26e4d420f0b57cd7",
        DELETE: "ea7db97647627e1d",
    },
    replacements=_replacements,
)
