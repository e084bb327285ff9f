"""The printed definitions of registries accept what those of mirrord-operator's chart accept."""

from collections.abc import Mapping
from typing import Any

import jsonschema_rs
import pytest

from signalbox.splitting.consumers.definitions import definitions
from tests.unit.splitting.consumers.registries import in_namespace, new, new_queue, old, old_queue, property_list

DEFINITIONS = {one["spec"]["names"]["kind"]: one for one in definitions()}
SOURCE = {"env": "Q", **dict.fromkeys(("envLike", "fallback", "valueSelector", "valuePattern", "containers"))}


def plain(schema: object) -> Any:
    """Return a schema of JSON Schema, which has no `nullable`."""
    if isinstance(schema, list):
        return [plain(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {name: plain(value) for name, value in schema.items() if name != "nullable"}
    return {"anyOf": [found, {"type": "null"}]} if schema.get("nullable") is True else found


def accepts(document: Mapping[str, Any]) -> bool:
    (version,) = DEFINITIONS[document["kind"]]["spec"]["versions"]
    group = DEFINITIONS[document["kind"]]["spec"]["group"]
    assert document["apiVersion"] == f"{group}/{version['name']}"
    return bool(jsonschema_rs.is_valid(plain(version["schema"]["openAPIV3Schema"]), document))


def test_the_definitions_have_mirrords_names():
    """metalbear-co/charts, mirrord-operator/templates/crd.yaml."""
    assert {name: one["metadata"]["name"] for name, one in DEFINITIONS.items()} == {
        "MirrordWorkloadQueueRegistry": "mirrordworkloadqueueregistries.queues.mirrord.metalbear.co",
        "MirrordSplitConfig": "mirrordsplitconfigs.queues.mirrord.metalbear.co",
        "MirrordPropertyList": "mirrordpropertylists.mirrord.metalbear.co",
    }
    assert {one["spec"]["scope"] for one in DEFINITIONS.values()} == {"Namespaced"}
    assert DEFINITIONS["MirrordWorkloadQueueRegistry"]["spec"]["names"]["shortNames"] == ["qs"]


@pytest.mark.parametrize(
    "document",
    [
        old({"q": old_queue(), "r": {"queueType": "RMQ", "clusterProperties": "rabbit"}}, kind="Deployment"),
        old({}, kind="Rollout", workloadRestartTimeout=None) | {"status": None},
        new(new_queue(SOURCE, clientConfig=None, queueConfig="options"), restart=None, drainTimeout=0),
        new(
            new_queue(SOURCE), clientConfigs={"kafka": "kafka-conf", "sqs": None}, tmpNameTemplate="mirrord-{{RANDOM}}"
        ),
        new(
            {"id": "k", "kind": "kafka", "appConfig": {"topic": [{"env": "T"}], "groupId": None}},
            restart={"strategy": None, "timeout": 5, "waitForPods": "all"},
        ),
        new(restart={"strategy": "isolatePods", "waitForPods": 1}),
        in_namespace("shop", property_list(sns="true")),
        property_list()
        | {
            "spec": {
                "properties": [{"name": "a", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
                "propertiesFrom": [{"prefix": "p", "configMapRef": {"name": "c", "optional": True}}],
            }
        },
    ],
)
def test_a_document_that_mirrords_definitions_accept_is_accepted(document):
    assert accepts(document)


@pytest.mark.parametrize(
    "document",
    [
        old({"q": old_queue()}, kind="Lambda"),
        old({"q": old_queue(queueType="sqs")}, kind="Deployment"),
        old({"q": old_queue()}, kind="Deployment", workloadRestartTimeout=-1),
        new(new_queue({"env": 5})),
        new(new_queue(SOURCE, kind="SQS")),
        new({"id": "q", "kind": "sqs"}),
        new(restart={"strategy": "recreate"}),
        property_list() | {"spec": {"properties": [{"value": "true"}]}},
        property_list() | {"spec": {"propertiesFrom": [{"configMapRef": {}}]}},
    ],
)
def test_a_document_of_another_form_is_refused(document):
    assert not accepts(document)
