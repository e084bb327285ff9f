"""An unchanged stage is not synthesized or deployed again."""

import json

import boto3
import pytest
from moto import mock_aws

from signalbox.local.assembly.current import current_stage, deployment_of, synthesized
from signalbox.local.emulator.lifecycle import Credentials, Emulator
from signalbox.local.files import write_json
from signalbox.local.stage_folder import StageFolder

STACK = json.dumps({"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}})
CHANGED = json.dumps({"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}, "More": {"Type": "AWS::SQS::Queue"}}})


@pytest.fixture
def synthesis(tmp_path):
    """A synthesis with one asset outside of the assembly, and the folders that it made."""
    made, asset = [], tmp_path / "code"

    def synthesize(folder):
        made.append(folder)
        folder.mkdir(exist_ok=True)
        asset.touch()
        file = {
            "source": {"path": str(asset), "packaging": "file"},
            "destinations": {"here": {"bucketName": "b", "objectKey": "k"}},
        }
        (folder / "files.json").write_text(json.dumps({"files": {"a": file}}))
        artifacts = {"files": {"type": "cdk:asset-manifest", "properties": {"file": "files.json"}}}
        (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))

    return synthesize, made, asset


def test_the_same_sources_are_synthesized_once(tmp_path, synthesis):
    synthesize, made, _ = synthesis

    for digest in ("one", "one", "two"):
        synthesized(tmp_path / "assembly", digest, synthesize)

    assert len(made) == 2


def test_an_assembly_whose_asset_is_gone_is_made_again(tmp_path, synthesis):
    synthesize, made, asset = synthesis
    synthesized(tmp_path / "assembly", "one", synthesize)

    asset.unlink()
    synthesized(tmp_path / "assembly", "one", synthesize)

    assert len(made) == 2


def test_a_failed_synthesis_leaves_no_assembly_that_counts_as_current(tmp_path, synthesis):
    synthesize, made, _ = synthesis
    synthesized(tmp_path / "assembly", "one", synthesize)

    def fail(folder):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        synthesized(tmp_path / "assembly", "two", fail)
    synthesized(tmp_path / "assembly", "one", synthesize)

    assert len(made) == 2


class Running(Emulator):
    """An emulator whose AWS is in this process."""

    def session(self):
        return boto3.Session("AKIA1", "secret", region_name=self.region)


@pytest.fixture
def stage(tmp_path):
    """A running stage of one stack, and its folder with local.json."""
    folder = StageFolder(tmp_path)
    running = Running(4601, "instance-1", "us-east-1", Credentials("AKIA1", "hidden"))
    with mock_aws():
        running.session().client("cloudformation").create_stack(StackName="trial", TemplateBody=STACK)
        write_json(folder.local, {"deployment": deployment_of(running.session(), ["trial"], "one")})
        yield folder, running


def test_a_stage_of_the_same_sources_is_current(stage):
    folder, running = stage

    current = current_stage(folder, running, "one")

    assert current is not None
    assert current["deployment"]["sources"] == "one"


@pytest.mark.parametrize("digest", ["two", None], ids=["other sources", "a given assembly"])
def test_a_stage_of_other_sources_is_not_current(stage, digest):
    folder, running = stage

    assert current_stage(folder, running, digest) is None


def test_a_stage_whose_stack_somebody_deleted_is_not_current(stage):
    folder, running = stage

    running.session().client("cloudformation").delete_stack(StackName="trial")

    assert current_stage(folder, running, "one") is None


def test_a_stage_whose_stack_somebody_replaced_is_not_current(stage):
    folder, running = stage
    cloudformation = running.session().client("cloudformation")

    cloudformation.update_stack(StackName="trial", TemplateBody=CHANGED)

    assert current_stage(folder, running, "one") is None


def test_a_stage_of_an_earlier_version_is_not_current(stage):
    folder, running = stage

    write_json(folder.local, {"outputs": {}})

    assert current_stage(folder, running, "one") is None
