"""`signalbox split kubernetes rbac` and `crd`, which need no stage and no cluster."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from signalbox.cli.main import app
from signalbox.errors import RejectedError
from signalbox.splitting.consumers.definitions import definitions


def printed(*options: str) -> str:
    command = ["split", "kubernetes", "rbac", *options]
    return CliRunner().invoke(app, command, catch_exceptions=False).stdout


def test_the_role_and_its_binding_are_yaml_for_the_group_of_the_stage():
    text = printed("--target", "deployment/meme-app", "--namespace", "shop", "--stage", "trial")

    role, binding, *_ = yaml.safe_load_all(text)
    assert role["metadata"] == {"name": "signalbox-trial", "namespace": "shop"}
    assert role["rules"][0]["resourceNames"] == ["meme-app"]
    assert binding["subjects"][0]["name"] == "signalbox:trial"
    assert "# Apply it as an administrator of the cluster: kubectl apply -f FILE" in text
    assert "reading every config map" in text


def test_json_is_a_list_that_kubectl_takes():
    options = ("--target", "statefulset/a@lab/main", "--config-map", "queues", "--config-map", "others", "--crd")
    found = json.loads(printed(*options, "--service-account", "tools/signalbox", "--json"))

    role, binding, *_ = found["items"]
    assert (found["kind"], found["apiVersion"]) == ("List", "v1")
    assert role["metadata"]["namespace"] == "lab"
    assert [rule.get("resourceNames") for rule in role["rules"]] == [["a"], None, ["queues", "others"], None, None]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "signalbox", "namespace": "tools"}]


def test_the_definitions_of_registries_are_printed_for_kubectl():
    text = CliRunner().invoke(app, ["split", "kubernetes", "crd"], catch_exceptions=False).stdout
    listed = CliRunner().invoke(app, ["split", "kubernetes", "crd", "--json"], catch_exceptions=False).stdout

    assert list(yaml.safe_load_all(text)) == json.loads(listed)["items"] == definitions()
    assert "&id" not in text
    assert "# Apply them as an administrator of a cluster without mirrord's operator" in text


def test_no_config_map_is_read_on_demand():
    text = printed("--target", "deployment/a", "--no-config-maps")

    assert "config" not in text


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((), "the role would allow nothing"),
        (("--target", "lambda/a"), "not on Kubernetes: lambda/a"),
        (("--target", "deployment/a", "--config-map", "b", "--no-config-maps"), "either --config-map or"),
    ],
)
def test_problems_are_named(options, problem):
    with pytest.raises(RejectedError, match=problem):
        printed(*options)
