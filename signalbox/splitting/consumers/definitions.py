"""Definitions of mirrord's registries, for Kubernetes clusters without mirrord's operator.

They accept what those of its chart accept: https://github.com/metalbear-co/charts, mirrord-operator/templates/crd.yaml.
"""

from collections.abc import Mapping
from typing import Any

from signalbox.splitting.consumers.registry_file import API_VERSIONS, NEW, OLD, PLURALS, PROPERTIES
from signalbox.splitting.consumers.registry_reader import NEW_KINDS, OLD_KINDS, STRATEGIES
from signalbox.splitting.model.target import TargetKind

SHORT_NAMES = {OLD: ["qs"], NEW: [], PROPERTIES: ["mpl"]}
# Where an application of any broker may read a name: the fields of `appConfig`.
NAMES = (
    *("appId", "channel", "channelPattern", "exchange", "groupId", "projectId", "queue", "shardChannel"),
    *("subscription", "taskQueue", "temporalAddress", "temporalNamespace", "topic"),
)
UNKNOWN = "unknown"  # mirrord's word for what a later version may add

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer", "minimum": 0}
ANYTHING: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definitions() -> list[Schema]:
    """Return the three CustomResourceDefinitions."""
    specs = {OLD: _workload_queue_registry(), NEW: _split_config(), PROPERTIES: _property_list()}
    return [_definition(kind, spec) for kind, spec in specs.items()]


def _definition(kind: str, spec: Schema) -> Schema:
    group, _, version = API_VERSIONS[kind].partition("/")
    names = {"kind": kind, "plural": PLURALS[kind], "singular": kind.lower(), "shortNames": SHORT_NAMES[kind]}
    schema = _object({"spec": spec, "status": _nullable(ANYTHING)}, "spec")
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURALS[kind]}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [served]},
    }


def _workload_queue_registry() -> Schema:
    workload = _one_of(TargetKind.DEPLOYMENT, TargetKind.ROLLOUT, TargetKind.STATEFUL_SET)
    consumer = _object({"name": TEXT, "workloadType": workload, "container": _nullable(TEXT)}, "name", "workloadType")
    queue = {**ANYTHING, "properties": {"queueType": _one_of(*OLD_KINDS)}, "required": ["queueType"]}
    queues = {"type": "object", "additionalProperties": queue}
    fields = {"consumer": consumer, "queues": queues, "workloadRestartTimeout": _nullable(NUMBER)}
    return _object(fields, "consumer", "queues")


def _split_config() -> Schema:
    target = _object({"apiVersion": TEXT, "kind": TEXT, "name": TEXT}, "apiVersion", "kind", "name")
    texts = ("env", "envLike", "fallback", "valueSelector", "valuePattern")
    source = _object({**dict.fromkeys(texts, _nullable(TEXT)), "containers": _nullable(_list(TEXT))})
    queue = _object(
        {
            "id": TEXT,
            "kind": _one_of(*NEW_KINDS, UNKNOWN),
            "clientConfig": _nullable(TEXT),
            "queueConfig": _nullable(TEXT),
            "appConfig": _object(dict.fromkeys(NAMES, _nullable(_list(source)))),
        },
        *("id", "kind", "appConfig"),
    )
    restart = {
        "strategy": _nullable(_one_of(*STRATEGIES, UNKNOWN, None)),
        "timeout": _nullable(NUMBER),
        "waitForPods": {"x-kubernetes-int-or-string": True, "nullable": True},
    }
    fields = {
        "targetRef": target,
        "queues": _list(queue),
        "clientConfigs": _nullable(_object(dict.fromkeys(NEW_KINDS, _nullable(TEXT)))),
        "restart": _nullable(_object(restart)),
        "drainTimeout": _nullable(NUMBER),
        "tmpNameTemplate": _nullable(TEXT),
    }
    return _object(fields, "targetRef", "queues")


def _property_list() -> Schema:
    optional = {"type": "boolean", "default": False}
    resource = _object({"name": TEXT, "optional": optional}, "name")
    key = _object({"name": TEXT, "key": TEXT, "optional": optional}, "name", "key")
    origin = _object({"configMapKeyRef": key, "secretKeyRef": key})
    value = _object({"name": TEXT, "value": TEXT, "valueFrom": origin}, "name")
    values = _object({"prefix": TEXT, "configMapRef": resource, "secretRef": resource})
    return _object({"properties": _list(value), "propertiesFrom": _list(values)})


def _object(properties: Schema, *required: str) -> Schema:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _one_of(*words: str | None) -> Schema:
    return {**TEXT, "enum": [word and str(word) for word in words]}


def _nullable(schema: Schema) -> Schema:
    return {**schema, "nullable": True}
