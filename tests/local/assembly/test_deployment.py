"""A synthesized app is deployed: assets once, stacks in their order, failures with their causes."""

import io
import json
import zipfile

import boto3
import pytest
from moto import mock_aws

from signalbox.clients.stage_session import found_stack
from signalbox.errors import UnavailableError
from signalbox.local.assembly.artifacts import DefaultPlace, artifacts_of, assets, stack_artifacts, zipped
from signalbox.local.assembly.deployment import deploy

PLACE = DefaultPlace("123456789012", "eu-central-1")
BUCKET = f"assets-{PLACE.account}-{PLACE.region}"
PLACEHOLDER = "assets-${AWS::AccountId}-${AWS::Region}"
QUEUE = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "memes"}}
READER = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": {"Fn::ImportValue": "Name"}}}


def file_asset(path, key, *, packaging="file", **destination):
    where = {"bucketName": PLACEHOLDER, "objectKey": key, **destination}
    return {"source": {"path": path, "packaging": packaging}, "destinations": {"here": where}}


def stack(name, *dependencies, region="unknown-region", **properties):
    url = f"s3://{PLACEHOLDER}/{name}.json"
    return {
        "type": "aws:cloudformation:stack",
        "environment": f"aws://unknown-account/{region}",
        "properties": {"stackTemplateAssetObjectUrl": url, **properties},
        "dependencies": dependencies,
    }


def write(folder, templates, files=(), **changed):
    """Write an assembly in which the stack `first` depends on `second`."""
    folder.mkdir(exist_ok=True)
    all_files = {name: file_asset(f"{name}.json", f"{name}.json") for name in templates} | dict(files)
    (folder / "files.json").write_text(json.dumps({"files": all_files}))
    for name, resources in templates.items():
        outputs = {"Of": {"Value": name}}
        if name == "second":
            outputs["Exported"] = {"Value": "readers", "Export": {"Name": "Name"}}
        (folder / f"{name}.json").write_text(json.dumps({"Resources": resources, "Outputs": outputs}))
    artifacts = {
        "first": stack("first", "files", "second", **changed),
        "second": stack("second", "files"),
        "files": {"type": "cdk:asset-manifest", "properties": {"file": "files.json"}},
    }
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    return folder


@pytest.fixture
def session():
    with mock_aws():
        session = boto3.Session("AKIA1", "secret", region_name=PLACE.region)
        session.client("s3").create_bucket(
            Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": PLACE.region}
        )
        yield session


def queues(session):
    urls = session.client("sqs").list_queues().get("QueueUrls", [])
    return {url.rpartition("/")[2] for url in urls}


def test_stacks_come_after_those_on_which_they_depend(tmp_path):
    folder = write(tmp_path / "assembly", {}, region="eu-west-1", stackName="other", tags={"a": "b"})

    second, first = stack_artifacts(artifacts_of(folder), PLACE)

    assert (second.name, second.region, first.name, first.region) == ("second", "eu-central-1", "other", "eu-west-1")
    assert first.tags == {"a": "b"}
    assert first.template_url == f"https://s3.eu-west-1.amazonaws.com/assets-{PLACE.account}-eu-west-1/first.json"


def test_an_asset_of_another_region_goes_to_the_bucket_of_that_region(tmp_path):
    folder = write(tmp_path / "assembly", {}, {"a": file_asset("a.py", "a.py", region="eu-west-1")})

    (found,) = assets(folder, artifacts_of(folder), PLACE)

    assert (found.bucket, found.region, found.path) == (
        f"assets-{PLACE.account}-eu-west-1",
        "eu-west-1",
        folder / "a.py",
    )


def test_an_archive_of_a_folder_has_its_files_and_is_the_same_each_time(tmp_path):
    (tmp_path / "lambdas").mkdir()
    (tmp_path / "lambdas" / "offer.py").write_text("def handler(): ...")

    archive = zipped(tmp_path)

    assert zipfile.ZipFile(io.BytesIO(archive)).read("lambdas/offer.py") == b"def handler(): ..."
    (tmp_path / "lambdas" / "offer.py").touch()
    assert zipped(tmp_path) == archive


def test_a_deployment_creates_stacks_then_updates_what_has_changed(tmp_path, session):
    templates = {"first": {"Reader": READER}, "second": {"Queue": QUEUE}}
    said = []

    deploy(write(tmp_path / "one", templates), session, PLACE, said.append)
    created = found_stack(session.client("cloudformation"), "second")
    assert queues(session) == {"memes", "readers"}

    session.client("s3").delete_object(Bucket=BUCKET, Key="first.json")  # as if it had another name
    more = {"More": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "more"}}}
    deploy(write(tmp_path / "two", {**templates, "first": {"Reader": READER, **more}}), session, PLACE, said.append)

    assert queues(session) == {"memes", "readers", "more"}
    assert found_stack(session.client("cloudformation"), "second")["StackId"] == created["StackId"]


def test_an_asset_that_exists_is_not_uploaded_again(tmp_path, session):
    script = {"script": file_asset("script.py", "script.py")}
    folder = write(tmp_path / "one", {"first": {"Reader": READER}, "second": {"Queue": QUEUE}}, script)
    (folder / "script.py").write_text("new")
    s3 = session.client("s3")
    s3.put_object(Bucket=BUCKET, Key="script.py", Body=b"there")

    deploy(folder, session, PLACE, lambda _: None)

    assert s3.get_object(Bucket=BUCKET, Key="script.py")["Body"].read() == b"there"


def test_a_failed_deployment_names_the_stack_and_the_cause(tmp_path, session):
    other = {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": {"Fn::ImportValue": "Missing"}}}
    folder = write(tmp_path / "one", {"first": {"Other": other}, "second": {"Queue": QUEUE}})

    with pytest.raises(UnavailableError, match=r"the deployment of first failed:\n.*Missing"):
        deploy(folder, session, PLACE, lambda _: None)


def test_a_stack_gets_the_tags_and_the_protection_of_its_artifact(tmp_path, session):
    templates = {"first": {"Reader": READER}, "second": {"Queue": QUEUE}}
    folder = write(tmp_path / "one", templates, tags={"a": "b"}, terminationProtection=True)

    deploy(folder, session, PLACE, lambda _: None)

    found = found_stack(session.client("cloudformation"), "first")
    assert found["Tags"] == [{"Key": "a", "Value": "b"}]
    assert found["EnableTerminationProtection"] is True
