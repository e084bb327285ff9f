"""Stacks may have access entries of EKS clusters."""

import json

import pytest

from signalbox.local.eks import create_cluster
from signalbox.local.emulator.patches.access_entries import TYPE, handlers

ROLE, OTHER = "arn:aws:iam::000000000000:role/control", "arn:aws:iam::000000000000:role/other"
PROPERTIES = {"ClusterName": "prod", "PrincipalArn": ROLE, "Type": "STANDARD", "KubernetesGroups": ["signalbox:trial"]}
ENTRY = {"kubernetesGroups": ["signalbox:trial"], "username": ""}


class Eks:
    """The functions of MiniStack's EKS API, which note their calls."""

    def __init__(self, status: int = 200) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.status = status
        self.handlers = handlers(**{name: self.called(name) for name in ("create", "update", "delete")})

    def called(self, name: str):
        def call(*arguments: object) -> tuple[int, dict[str, str], bytes]:
            self.calls.append((name, *arguments))
            return self.status, {}, b"{}"

        return call


def test_an_entry_is_made_as_the_api_makes_it():
    eks = Eks()

    assert eks.handlers["create"]("Entry", PROPERTIES, "trial") == (f"{ROLE}|prod", {})
    assert eks.calls == [("create", "prod", {**ENTRY, "principalArn": ROLE, "type": "STANDARD"})]


def test_groups_are_changed_in_place():
    eks = Eks()

    eks.handlers["update"]("id", PROPERTIES, {**PROPERTIES, "KubernetesGroups": []}, "trial")

    assert eks.calls == [("update", "prod", ROLE, {**ENTRY, "kubernetesGroups": []})]


@pytest.mark.parametrize("change", [{"ClusterName": "test"}, {"PrincipalArn": OTHER}], ids=["cluster", "principal"])
def test_an_entry_of_another_cluster_or_principal_replaces_the_first(change):
    eks = Eks()

    eks.handlers["update"]("id", PROPERTIES, {**PROPERTIES, **change}, "trial")

    assert [name for name, *_ in eks.calls] == ["create", "delete"]
    assert eks.calls[1] == ("delete", "prod", ROLE)


def test_an_entry_of_a_cluster_that_does_not_exist_fails_the_stack():
    without_type = {key: PROPERTIES[key] for key in ("ClusterName", "PrincipalArn")}

    with pytest.raises(ValueError, match=f"{TYPE} Entry failed"):
        Eks(404).handlers["create"]("Entry", without_type, "trial")


def test_an_entry_of_a_cluster_that_was_deleted_is_deleted():
    Eks(404).handlers["delete"]("id", PROPERTIES)


@pytest.mark.emulator
@pytest.mark.release
def test_a_stack_makes_changes_and_deletes_an_access_entry(running):
    session = running.session()
    eks, cloudformation = session.client("eks"), session.client("cloudformation")
    create_cluster(session, "entered")

    def template(*groups: str) -> str:
        properties = {**PROPERTIES, "ClusterName": "entered", "KubernetesGroups": groups}
        return json.dumps({"Resources": {"Entry": {"Type": TYPE, "Properties": properties}}})

    def entry() -> dict[str, object]:
        return eks.describe_access_entry(clusterName="entered", principalArn=ROLE)["accessEntry"]

    cloudformation.create_stack(StackName="entry", TemplateBody=template("signalbox:trial"))
    cloudformation.get_waiter("stack_create_complete").wait(StackName="entry", WaiterConfig={"Delay": 1})
    assert (entry()["type"], entry()["kubernetesGroups"]) == ("STANDARD", ["signalbox:trial"])
    cloudformation.update_stack(StackName="entry", TemplateBody=template("signalbox:other"))
    cloudformation.get_waiter("stack_update_complete").wait(StackName="entry", WaiterConfig={"Delay": 1})
    assert entry()["kubernetesGroups"] == ["signalbox:other"]
    cloudformation.delete_stack(StackName="entry")
    cloudformation.get_waiter("stack_delete_complete").wait(StackName="entry", WaiterConfig={"Delay": 1})

    with pytest.raises(eks.exceptions.ResourceNotFoundException):
        entry()
