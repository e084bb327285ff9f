"""Field managers of variables; the paths are those that API servers of version 1.34 write."""

import pytest

from signalbox.splitting.kubernetes.field_managers import (
    FieldOwnership,
    is_given_up,
    is_managed,
    owners,
    returned,
    with_values,
)
from tests.unit.splitting.kubernetes.workloads import OWNER, managed

OURS = managed("Q", ".", "f:name", "f:value", manager="signalbox", operation="Apply")
HAD, HAS = managed("Q", ".", "f:name", "f:value"), managed("Q", ".", "f:name")
ATOMIC = {**OWNER, "fieldsV1": {"f:spec": {"f:template": {"f:spec": {"f:containers": {}}}}}}
STATUS = {**OWNER, "subresource": "status", "fieldsV1": {"f:status": {}}}


def test_the_managers_of_a_value_are_found_with_what_they_lose():
    (found,) = owners([HAD, OURS, STATUS, managed("P", "f:value")], "main", "Q")

    assert (found.entry["manager"], found.depth, found.fields) == ("kubectl", 7, {"f:value": {}})
    assert FieldOwnership.of_document(found.document()).fields == {"f:value": {}}


def test_the_manager_of_an_atomic_list_above_is_found():
    (found,) = owners([ATOMIC], "main", "Q")

    assert (found.depth, found.fields) == (4, {})


def test_a_manager_of_the_entry_alone_loses_nothing():
    assert list(owners([HAS, {**OWNER, "fieldsV1": {}}], "main", "Q")) == []


def test_fields_are_returned_and_ours_are_gone():
    (ownership,) = owners([HAD], "main", "Q")

    assert returned([HAS, OURS, STATUS], {("main", "Q"): [ownership]}) == [HAD, STATUS]
    assert managed("Q", ".", "f:name") == HAS


def test_a_manager_that_lost_all_of_its_fields_returns():
    only = managed("Q", "f:value", manager="kubectl-set", time="2026-11-20T10:00:00Z")
    (ownership,) = (FieldOwnership.of_document(one.document()) for one in owners([only], "main", "Q"))

    (found,) = returned([OURS], {("main", "Q"): [ownership]})

    path = {**only, "fieldsV1": managed("Q", "f:value")["fieldsV1"]}
    path["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"main"}'].pop(".")
    assert found == path


def test_an_atomic_list_is_returned_whole():
    (ownership,) = owners([ATOMIC], "main", "Q")

    assert returned([{**OWNER, "fieldsV1": {"f:spec": {"f:replicas": {}}}}], {("main", "Q"): [ownership]}) == [
        {
            **OWNER,
            "fieldsV1": {"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {}}}}},
        }
    ]


def test_a_variable_is_given_up_when_no_manager_of_its_entry_has_it_any_more():
    before = list(owners([HAD], "main", "Q"))

    assert is_given_up([OURS, managed("P", ".")], before, "main", "Q")
    assert not is_given_up([HAS, OURS], before, "main", "Q")


@pytest.mark.parametrize("manager", [ATOMIC, managed("Q", "f:value")])
def test_a_variable_whose_entry_belonged_to_nobody_is_not_given_up(manager):
    assert not is_given_up([OURS], list(owners([manager], "main", "Q")), "main", "Q")


def test_signalbox_manages_what_it_applied():
    assert is_managed([HAS, OURS])
    assert not is_managed([HAS])


def test_a_manager_that_applies_the_source_of_a_value_has_the_literal_value_during_the_split():
    sourced = managed("Q", ".", "f:name", "f:valueFrom", operation="Apply")
    named = managed("Q", ".", "f:name", operation="Apply")
    patched = managed("Q", "f:value", manager="signalbox")
    patched["fieldsV1"]["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"main"}'].pop(".")
    annotated = {**patched, "fieldsV1": {**patched["fieldsV1"], "f:metadata": {}}}
    before = list(owners([sourced], "main", "Q"))

    assert with_values([named, annotated, STATUS], {("main", "Q"): before}) == [
        managed("Q", ".", "f:name", "f:value", operation="Apply"),
        {**annotated, "fieldsV1": {"f:metadata": {}}},
        STATUS,
    ]


def test_a_manager_that_updates_a_variable_does_not_get_its_literal_value():
    before = list(owners([managed("Q", ".", "f:valueFrom")], "main", "Q"))

    assert with_values([HAS, OURS], {("main", "Q"): before}) == [HAS, OURS]


def test_fields_that_signalbox_does_not_have_stay():
    before = list(owners([managed("Q", ".", "f:valueFrom", operation="Apply")], "main", "Q"))
    other = managed("P", ".", manager="signalbox")

    assert with_values([other], {("main", "Q"): before}) == [other]
