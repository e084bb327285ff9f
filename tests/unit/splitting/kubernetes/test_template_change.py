"""Changes of a pod template, and the record of them."""

import json

import pytest

from signalbox.splitting.kubernetes.field_managers import owners
from signalbox.splitting.kubernetes.switch_record import ANNOTATION, SwitchRecord, VariableBefore, read_record
from signalbox.splitting.kubernetes.template_change import TemplateChange
from tests.unit.splitting.kubernetes.workloads import container, managed, plain, workload

ENTRY = {"name": "Q", "value": "tmp"}
VERSION = {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}


def test_an_apply_has_exactly_the_managed_fields_and_the_version():
    change = TemplateChange({("main", "Q"): ENTRY, ("main", "P"): None}, on_template="record")

    assert change.applied(workload(container(env=plain(Q="orders")), container("sidecar"))) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7"},
        "spec": {
            "template": {
                "metadata": {"annotations": {ANNOTATION: "record"}},
                "spec": {"containers": [{"name": "main", "env": [ENTRY]}]},
            }
        },
    }


def test_an_apply_without_entries_has_the_annotation_of_the_workload():
    applied = TemplateChange({}, on_workload="record").applied(workload(container()))

    assert applied["metadata"]["annotations"] == {ANNOTATION: "record"}
    assert applied["spec"] == {"template": {}}


def test_a_patch_replaces_adds_and_removes_entries():
    found = workload(container(env=plain(Q="orders", P="x")), container("sidecar"))
    found["spec"]["template"]["metadata"] = {"annotations": {"a/b": "c", ANNOTATION: "old"}}
    added = {"name": "R", "value": "r"}

    change = TemplateChange({("main", "Q"): ENTRY, ("main", "P"): None, ("main", "R"): added}, on_workload="record")

    assert change.operations(found) == [
        VERSION,
        {"op": "add", "path": "/spec/template/spec/containers/0/env", "value": [ENTRY, added]},
        {"op": "add", "path": "/spec/template/metadata/annotations", "value": {"a/b": "c"}},
        {"op": "add", "path": "/metadata/annotations", "value": {ANNOTATION: "record"}},
    ]


def test_a_patch_creates_the_metadata_of_a_template_that_has_none():
    change = TemplateChange({("main", "Q"): ENTRY}, on_template="record")

    assert change.operations(workload(container()))[2:] == [
        {"op": "add", "path": "/spec/template/metadata", "value": {}},
        {"op": "add", "path": "/spec/template/metadata/annotations", "value": {ANNOTATION: "record"}},
    ]


def test_a_patch_removes_what_becomes_empty():
    found = workload(container(env=plain(Q="tmp")))
    found["spec"]["template"]["metadata"] = {"annotations": {ANNOTATION: "old"}}

    assert TemplateChange({("main", "Q"): None}).operations(found)[1:] == [
        {"op": "remove", "path": "/spec/template/spec/containers/0/env"},
        {"op": "remove", "path": "/spec/template/metadata/annotations"},
    ]


def test_a_record_is_read_as_it_was_written():
    ownerships = tuple(owners([managed("Q", ".", "f:value", time="2026-11-20T10:00:00Z")], "main", "Q"))
    before = {("main", "Q"): VariableBefore(dict(ENTRY), ownerships), ("main", "R"): VariableBefore(None)}

    found = read_record({ANNOTATION: SwitchRecord("deployment/web", before).text()}, "deployment/web")

    assert found.before[("main", "R")] == VariableBefore(None)
    assert found.before[("main", "Q")].entry == ENTRY
    assert [one.document() for one in found.before[("main", "Q")].owners] == [one.document() for one in ownerships]


def test_without_a_record_nothing_is_known():
    assert read_record({}, "x") == read_record(None, "x") == SwitchRecord("x")


OWNER = {"manager": "a", "depth": 6, "fields": {"f:value": {}}, "keeps_entry": True}
FORGED = [{"entry": 5}, {"entry": {"name": "NODE_OPTIONS", "value": "--inspect"}}, {"container": ["main"]}]
FORGED += [{"owners": [OWNER | change]} for change in ({"depth": "6"}, {"fields": {"f:value": 1}}, {"fields": 1})]


@pytest.mark.parametrize(
    "text", ["{", pytest.param("[" * 100_000, id="deep"), "5", '{"variables": [1]}', '{"variables": [{}]}']
)
def test_a_text_that_others_wrote_is_no_record(text):
    assert read_record({ANNOTATION: text}, "x") == SwitchRecord("x")


@pytest.mark.parametrize("changed", [{}, *FORGED])
def test_a_record_that_others_changed_is_not_used(changed):
    variable = {"container": "main", "name": "Q", "entry": {"name": "Q"}, "owners": [OWNER]}

    found = read_record({ANNOTATION: json.dumps({"variables": [variable | changed]})}, "x")

    assert bool(found.before) == (not changed)
