"""Builders of registries for tests."""

import pytest

from signalbox.splitting.consumers.queue_reference import Home
from signalbox.splitting.consumers.registry import NameSource, Registry
from signalbox.splitting.consumers.registry_file import InvalidRegistry, parse_registries
from signalbox.splitting.model.target import Target
from tests.unit.splitting.forwarding.languages import PlainLanguages

OLD = {"apiVersion": "queues.mirrord.metalbear.co/v1alpha", "kind": "MirrordWorkloadQueueRegistry"}
NEW = {"apiVersion": "queues.mirrord.metalbear.co/v1", "kind": "MirrordSplitConfig"}
PROPERTIES = {"apiVersion": "mirrord.metalbear.co/v1", "kind": "MirrordPropertyList"}
HOME = Home("123456789012", "us-east-1")
MEME_APP = Target.parse("lambda/meme-app")


def parse(*documents: object) -> tuple[Registry, ...]:
    return parse_registries(documents, PlainLanguages())


def problems(*documents: object) -> list[str]:
    with pytest.raises(InvalidRegistry) as refusal:
        parse(*documents)
    return str(refusal.value).splitlines()


def old(queues: object, *, kind: str = "Lambda", name: str = "meme-app", **spec: object) -> dict[str, object]:
    consumer = {"name": name, "workloadType": kind, "container": "main"}
    return {**OLD, "metadata": {"name": "r"}, "spec": {"queues": queues, "consumer": consumer, **spec}}


def new(*queues: object, kind: str = "Lambda", name: str = "meme-app", **spec: object) -> dict[str, object]:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": name}
    return {**NEW, "metadata": {"name": "r"}, "spec": {"targetRef": reference, "queues": list(queues), **spec}}


def old_queue(**fields: object) -> dict[str, object]:
    return {"queueType": "SQS", "nameSource": {"envVar": "Q"}, **fields}


def new_queue(*sources: object, **fields: object) -> dict[str, object]:
    return {"id": "q", "kind": "sqs", "appConfig": {"queue": list(sources)}, **fields}


def property_list(namespace: str = "default", **properties: str) -> dict[str, object]:
    listed = [{"name": name, "value": value} for name, value in properties.items()]
    return {**PROPERTIES, "metadata": {"name": "options", "namespace": namespace}, "spec": {"properties": listed}}


def in_namespace(namespace: str, document: dict[str, object], **annotations: str) -> dict[str, object]:
    return {**document, "metadata": {"name": "r", "namespace": namespace, "annotations": annotations}}


def source(document: dict[str, object]) -> NameSource:
    (registry,) = parse(document)
    return registry.queues[0].sources[0]
