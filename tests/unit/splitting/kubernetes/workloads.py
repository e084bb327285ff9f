"""Builders of Kubernetes workloads for tests."""

from collections.abc import Mapping
from typing import Any

from signalbox.splitting.consumers.environment import Resolver
from signalbox.splitting.kubernetes.pod_template import PodTemplate
from tests.unit.splitting.consumers.registries import HOME
from tests.unit.splitting.forwarding.languages import PlainLanguages

CONFIG_MAPS = {"queues": {"orders": "orders", "ORDERS": "orders", "LEVEL": "info"}}
OWNER = {"manager": "kubectl", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1"}


def container(name: str = "main", env: object = (), **fields: object) -> dict[str, Any]:
    return {"name": name, "env": env, **fields}


def plain(**values: str) -> list[dict[str, object]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def from_map(variable: str, key: str, name: str = "queues", **fields: object) -> dict[str, object]:
    return {"name": variable, "valueFrom": {"configMapKeyRef": {"name": name, "key": key, **fields}}}


def template(*containers: Mapping[str, Any]) -> PodTemplate:
    return PodTemplate({"spec": {"containers": containers}}, Resolver(PlainLanguages(), HOME), CONFIG_MAPS.get)


def workload(*containers: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a Deployment of version 7; `fields` are merged into it."""
    document: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7", "generation": 2},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {"spec": {"containers": list(containers)}}},
    }
    for name, value in fields.items():
        document[name] = {**document.get(name, {}), **value}
    return document


def managed(variable: str, *fields: str, of: str = "main", **entry: str) -> dict[str, Any]:
    """Return an entry of `managedFields` with these fields of a variable."""
    node = {f'k:{{"name":"{variable}"}}': {name: {} for name in fields}}
    main = {f'k:{{"name":"{of}"}}': {".": {}, "f:env": node}}
    return {**OWNER, **entry, "fieldsV1": {"f:spec": {"f:template": {"f:spec": {"f:containers": main}}}}}
