"""Roles of Kubernetes: exactly the named workloads, and nothing else."""

import pytest

from signalbox.splitting.consumers.rbac import InvalidRole, RoleRights, group, role_documents, service_account
from signalbox.splitting.model.target import Target

SUBJECT = group("trial")
READ = ["get", "list", "watch"]
PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": READ}
CONFIG_MAPS = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}


def documents(*targets, config_maps=(), crd=False, shared=False, subject=SUBJECT):
    rights = RoleRights(tuple(map(Target.parse, targets)), config_maps, crd, shared)
    return role_documents(rights, name="signalbox-trial", subject=subject)


def rules(*targets, **options):
    return documents(*targets, **options)[0]["rules"]


def workloads(api_group, resource, *names):
    rule = {"apiGroups": [api_group], "resources": [resource], "verbs": [*READ, "patch"]}
    return {**rule, "resourceNames": list(names)}


def test_a_role_names_its_workloads_and_sees_pods():
    found = rules("deployment/a@shop", "statefulset/b@shop", "rollout/c@shop", "deployment/d@shop/main")

    assert found == [
        workloads("apps", "deployments", "a", "d"),
        workloads("apps", "statefulsets", "b"),
        workloads("argoproj.io", "rollouts", "c"),
        PODS,
    ]


def test_a_workload_that_is_given_twice_is_named_once():
    assert rules("deployment/a@shop", "deployment/a@shop/main")[0] == workloads("apps", "deployments", "a")


def test_config_maps_are_read_by_name_or_all():
    assert rules("deployment/a@shop", config_maps=("queues",))[2:] == [{**CONFIG_MAPS, "resourceNames": ["queues"]}]
    assert rules("deployment/a@shop", config_maps=None)[2:] == [CONFIG_MAPS]


def test_registries_of_mirrord_are_read_on_demand():
    registries = ["mirrordworkloadqueueregistries", "mirrordsplitconfigs"]

    assert rules("deployment/a@shop", crd=True)[2:] == [
        {"apiGroups": ["queues.mirrord.metalbear.co"], "resources": registries, "verbs": READ},
        {"apiGroups": ["mirrord.metalbear.co"], "resources": ["mirrordpropertylists"], "verbs": READ},
    ]


@pytest.mark.parametrize("namespace", ["shop", "mirrord"])
def test_property_lists_of_the_operators_namespace_are_read_on_demand(namespace):
    role, binding = documents(f"deployment/a@{namespace}", shared=True)[-2:]

    assert role["metadata"] == binding["metadata"] == {"name": "signalbox-trial-lists", "namespace": "mirrord"}
    assert role["rules"] == [
        {"apiGroups": ["mirrord.metalbear.co"], "resources": ["mirrordpropertylists"], "verbs": READ}
    ]
    assert binding["roleRef"]["name"] == "signalbox-trial-lists"


def test_each_namespace_has_a_role_and_a_binding():
    shop, shop_binding, _, _, lab, *_ = documents("deployment/a@shop", "deployment/b@lab")

    assert (shop["kind"], shop["metadata"]) == ("Role", {"name": "signalbox-trial", "namespace": "shop"})
    assert shop_binding == {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "signalbox-trial", "namespace": "shop"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "signalbox-trial"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "signalbox:trial"}],
    }
    assert [lab["rules"][0], lab["metadata"]["namespace"]] == [workloads("apps", "deployments", "b"), "lab"]


def test_the_subject_may_be_a_service_account():
    _, binding, _, cluster_binding = documents("deployment/a@shop", subject=service_account("tools/signalbox"))

    account = {"kind": "ServiceAccount", "name": "signalbox", "namespace": "tools"}
    assert binding["subjects"] == cluster_binding["subjects"] == [account]


def test_a_role_of_the_cluster_reads_only_whether_the_namespace_exists():
    _, _, role, binding = documents("deployment/a@shop")

    namespaces = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"], "resourceNames": ["shop"]}
    assert (role["kind"], role["metadata"], role["rules"]) == (
        "ClusterRole",
        {"name": "signalbox-trial-shop"},
        [namespaces],
    )
    assert (binding["kind"], binding["roleRef"]["kind"], binding["roleRef"]["name"]) == (
        "ClusterRoleBinding",
        "ClusterRole",
        "signalbox-trial-shop",
    )


@pytest.mark.parametrize("text", ["signalbox", "/signalbox", "tools/", "a/b/c"])
def test_a_service_account_has_a_namespace_and_a_name(text):
    with pytest.raises(InvalidRole, match="expected NAMESPACE/NAME"):
        service_account(text)


@pytest.mark.parametrize(
    ("targets", "problem"),
    [
        ((), "the role would allow nothing"),
        (("lambda/a", "deployment/b@shop"), "not on Kubernetes: lambda/a$"),
        (("deployment/a@shop.prod", "deployment/b@shop.lab"), "in several clusters"),
    ],
)
def test_targets_of_one_cluster_are_required(targets, problem):
    with pytest.raises(InvalidRole, match=problem):
        documents(*targets)
