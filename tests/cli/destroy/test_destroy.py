"""`signalbox destroy` against stacks and resources in moto."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from typer.testing import CliRunner, Result

from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.splitting.splits import DynamoSplits
from signalbox.cli.destroy import command, removal, splits
from signalbox.cli.main import app
from signalbox.cli.shared import confirmation
from signalbox.cli.shared.deployment import find_deployment
from signalbox.errors import RejectedError
from signalbox.splitting.model.split import SplitSession, Stage
from signalbox.splitting.ports import StoredSplit
from tests.cli.shared.stage import FakeStage, Refusal, reply_queue_url, serving
from tests.fakes.aws import aws  # noqa: F401 - a fixture
from tests.unit.splitting.control.observed_states import session, split

STAGE_TAG = {"signalbox:stage": "signalbox"}
TAGS = {**STAGE_TAG, "signalbox:capability": "exchange"}
POLICY = json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*"}]}
)
OTHER = {"signalbox:stage": "other", "signalbox:capability": "exchange"}


def tag_list(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def created(name: str, template: dict[str, Any]) -> None:
    boto3.client("cloudformation").create_stack(StackName=name, TemplateBody=json.dumps(template))


def create_user(name: str, tags: dict[str, str]) -> None:
    iam = boto3.client("iam")
    iam.create_user(UserName=name, Path="/signalbox/", Tags=tag_list(tags))
    iam.create_access_key(UserName=name)
    iam.put_user_policy(UserName=name, PolicyName="exchange", PolicyDocument=POLICY)


def keys_of(*names: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "KeyType": kind} for name, kind in zip(names, ("HASH", "RANGE"), strict=True)]


# As in the stage's template; moto creates no secrets.
STATE = {
    "Resources": {
        "SplitsE5A1F0C2": {
            "Type": "AWS::DynamoDB::Table",
            "DeletionPolicy": "Retain",
            "Properties": {
                "TableName": "Splits",
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [
                    {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "kind")
                ],
                "KeySchema": keys_of("pk", "sk"),
                "GlobalSecondaryIndexes": [
                    {
                        "IndexName": "by_kind",
                        "KeySchema": keys_of("kind", "pk"),
                        "Projection": {"ProjectionType": "ALL"},
                    }
                ],
                "DeletionProtectionEnabled": True,
                "Tags": [{"Key": "signalbox:stage", "Value": "signalbox"}],
            },
        },
        "History": {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Retain", "Properties": {"BucketName": "lake"}},
        "StateKey": {"Type": "AWS::KMS::Key", "DeletionPolicy": "Retain", "Properties": {"KeyPolicy": {}}},
    }
}


@pytest.fixture
def stage(aws: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeStage]:  # noqa: F811 - the fixture
    """A stage that has created a queue, a user and keys, next to those of others."""
    monkeypatch.setattr(confirmation, "is_terminal", lambda: True)
    monkeypatch.setattr(removal, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(splits, "PAUSE_SECONDS", 0.01)
    sqs, iam = boto3.client("sqs"), boto3.client("iam")
    for name, tags in (("xpublic", TAGS), ("xother", OTHER), ("orders", {}), ("of-the-stack", STAGE_TAG)):
        sqs.create_queue(QueueName=name, tags=tags)
    sqs.send_message(QueueUrl=sqs.get_queue_url(QueueName="xpublic")["QueueUrl"], MessageBody="waits")
    create_user("signalbox_alice", TAGS)
    create_user("other_alice", OTHER)
    iam.create_user(UserName="snowflake-client")
    iam.create_access_key(UserName="snowflake-client")
    policy = iam.create_policy(PolicyName="SplitUsers", PolicyDocument=POLICY)["Policy"]["Arn"]
    iam.create_user(UserName="developer")
    iam.attach_user_policy(UserName="developer", PolicyArn=policy)
    iam.create_role(RoleName="ci", AssumeRolePolicyDocument="{}")
    iam.attach_role_policy(RoleName="ci", PolicyArn=policy)
    iam.create_group(GroupName="team")
    iam.attach_group_policy(GroupName="team", PolicyArn=policy)
    created("signalbox-state", STATE)
    control = sqs.create_queue(QueueName="signalbox-split-control")["QueueUrl"]
    outputs = {
        "ExchangeControlQueueUrl": "https://sqs/1/signalbox-exchange-control",
        "SplitControlQueueUrl": control,
        "SplitReplyQueueUrl": reply_queue_url(control),
        "ClientUserName": "snowflake-client",
        "SplitUserPolicyArn": policy,
    }
    with serving(outputs, [control]) as stage:
        yield stage


def test_without_a_terminal_nothing_is_removed_unasked(stage: FakeStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmation, "is_terminal", lambda: False)

    with pytest.raises(RejectedError, match="give --yes to confirm"):
        destroy("signalbox", input="y\n")


def destroy(*arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(app, ["destroy", *arguments, "--aws"], catch_exceptions=False, **options)


def removed(*arguments: str) -> dict[str, Any]:
    """Remove a stage without questions; return the printed document."""
    result = destroy(*arguments, "--yes", "--json")
    document: dict[str, Any] = json.loads(result.stdout)
    assert result.exit_code == (1 if document["failed"] else 0)
    return document


def stacks() -> list[str]:
    listed = boto3.client("cloudformation").describe_stacks()["Stacks"]
    return sorted(one["StackName"] for one in listed if one["StackStatus"] != "DELETE_COMPLETE")


def queues() -> list[str]:
    return sorted(url.rpartition("/")[2] for url in boto3.client("sqs").list_queues().get("QueueUrls", ()))


def users() -> list[str]:
    return sorted(one["UserName"] for one in boto3.client("iam").list_users()["Users"])


def test_what_the_stage_created_is_removed_and_what_others_have_stays(stage):
    document = removed("signalbox")

    assert stacks() == ["signalbox-state"]
    assert queues() == ["of-the-stack", "orders", "signalbox-split-control", "signalbox-split-reply", "xother"]
    assert users() == ["developer", "other_alice", "snowflake-client"]
    assert boto3.client("iam").list_access_keys(UserName="snowflake-client")["AccessKeyMetadata"] == []
    kinds = [one["kind"] for one in document["removed"]]
    attached = 3 * ["attachment of a policy"]
    assert kinds == ["access key of Snowflake clients", *attached, "stack", "queue", "IAM user"]
    assert {one["kind"] for one in document["stays"]} == {"table", "bucket", "KMS key", "state stack"}
    assert all(one["why"] for one in document["stays"])


def test_people_keep_none_of_the_policies_of_the_stack(stage):
    removed("signalbox")

    iam = boto3.client("iam")
    assert iam.list_attached_user_policies(UserName="developer")["AttachedPolicies"] == []
    assert iam.list_attached_role_policies(RoleName="ci")["AttachedPolicies"] == []
    assert iam.list_attached_group_policies(GroupName="team")["AttachedPolicies"] == []


def test_log_groups_that_glue_made_for_the_stage_are_removed(stage):
    logs = boto3.client("logs")
    for name in ("/signalbox/signalbox/jobs/error", "/signalbox/signalbox2/jobs/error", "/aws-glue/jobs/error"):
        logs.create_log_group(logGroupName=name)

    removed("signalbox")

    left = {one["logGroupName"] for one in logs.describe_log_groups()["logGroups"]}
    assert left == {"/signalbox/signalbox2/jobs/error", "/aws-glue/jobs/error"}


def test_it_shows_a_table_and_asks_first(stage):
    result = destroy("signalbox", input="n\n")

    assert result.exit_code == 1
    assert "about 1 messages are lost" in result.stdout
    assert "records of exchanges" in result.stdout
    assert "Remove these resources of stage signalbox?" in result.stderr
    assert stacks() == ["signalbox", "signalbox-state"]


def test_yes_at_the_question_removes(stage):
    result = destroy("signalbox", input="y\n")

    assert result.exit_code == 0
    assert stacks() == ["signalbox-state"]
    assert "resources of stage signalbox are removed, 4 stay" in result.stdout


def test_a_dry_run_removes_nothing(stage):
    document = json.loads(destroy("signalbox", "--dry-run", "--json").stdout)
    shown = destroy("signalbox", "--dry-run").stdout

    assert {"kind": "queue", "name": "xpublic", "note": "about 1 messages are lost"} in document["remove"]
    assert "xpublic" in shown
    assert shown.strip().startswith("To be removed from stage signalbox")
    assert "are removed" not in shown
    assert stacks() == ["signalbox", "signalbox-state"]


def test_a_second_run_finds_nothing_left_but_data(stage):
    removed("signalbox")

    again = removed("signalbox")

    assert (again["removed"], again["failed"]) == ([], [])
    assert len(again["stays"]) == 4


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize("step", ["", "_queue"], ids=["complete", "interrupted"])
def test_a_local_stage_is_destroyed_until_it_is_deployed_again(tmp_path, monkeypatch, step):
    here = {"outputs": {"ExchangeControlQueueUrl": "https://sqs/1/signalbox-exchange-control"}, "region": "us-east-1"}
    here |= {"rendezvous_url": "", "endpoint_url": "http://127.0.0.1:1", "admin_credentials": {}}
    (tmp_path / ".signalbox").mkdir()
    (tmp_path / ".signalbox" / "local.json").write_text(json.dumps(here))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "_session", lambda *_, **__: boto3.Session())
    if step:
        monkeypatch.setattr(removal.Removal, step, interrupted)

    done = CliRunner().invoke(app, ["destroy", "signalbox", "--yes", "--json"], catch_exceptions=False)

    assert done.exit_code == (130 if step else 0)
    with pytest.raises(RejectedError, match="was destroyed: `make up` or `signalbox local up` deploys it again"):
        find_deployment()
    assert find_deployment(is_being_destroyed=True).region == "us-east-1"


def test_a_local_stage_is_known_whatever_its_capabilities_are(tmp_path, monkeypatch):
    here = {"outputs": {}, "region": "us-east-1", "endpoint_url": "http://127.0.0.1:1"}
    here |= {"admin_credentials": {"access_key_id": "AKIA1", "secret_access_key": "hidden"}}
    here |= {"deployment": {"stacks": {"box-state": [], "box": []}}}
    (tmp_path / ".signalbox").mkdir()
    (tmp_path / ".signalbox" / "local.json").write_text(json.dumps(here))
    monkeypatch.chdir(tmp_path)

    assert command._session("box", aws=False).region_name == "us-east-1"
    with pytest.raises(RejectedError, match="the local stage is 'box', not 'other'; give --aws"):
        command._session("other", aws=False)


def test_everything_includes_the_data(stage):
    boto3.client("s3").put_bucket_versioning(Bucket="lake", VersioningConfiguration={"Status": "Enabled"})
    for number in range(1_200):  # in more than one page of a list
        boto3.client("s3").put_object(Bucket="lake", Key="raw/event", Body=str(number))
    boto3.client("s3").delete_object(Bucket="lake", Key="raw/event")

    document = removed("signalbox", "--everything", "--confirm", "signalbox")

    assert (stacks(), document["stays"], document["failed"]) == ([], [], [])
    assert boto3.client("dynamodb").list_tables()["TableNames"] == []
    assert boto3.client("s3").list_buckets()["Buckets"] == []
    keys = [boto3.client("kms").describe_key(KeyId=one["KeyId"]) for one in boto3.client("kms").list_keys()["Keys"]]
    assert [one["KeyMetadata"]["KeyState"] for one in keys] == ["PendingDeletion"]


def test_a_removal_of_everything_continues_where_the_tables_are_gone(stage):
    tables = boto3.client("dynamodb")
    for name in tables.list_tables()["TableNames"]:
        tables.update_table(TableName=name, DeletionProtectionEnabled=False)
        tables.delete_table(TableName=name)

    document = removed("signalbox", "--everything", "--confirm", "signalbox")

    assert (stacks(), document["stays"], document["failed"]) == ([], [], [])


@pytest.mark.parametrize("arguments", [("--yes",), ("--yes", "--confirm", "signalbax")], ids=["not", "wrongly"])
def test_data_is_deleted_only_when_its_name_is_confirmed(stage, arguments):
    with pytest.raises(RejectedError, match="--confirm signalbox"):
        destroy("signalbox", "--everything", *arguments)

    assert stacks() == ["signalbox", "signalbox-state"]


def test_the_name_can_be_typed(stage):
    result = destroy("signalbox", "--everything", input="y\nsignalbox\n")

    assert "Type its name (signalbox)" in result.stderr
    assert (result.exit_code, stacks()) == (0, [])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("signalbax", "there is no stage 'signalbax' in region 'us-east-1'"),
        ("signalbox-state", "the stage is 'signalbox'"),
        ("website", "stack 'website' is no stage of Signalbox"),
    ],
)
def test_a_wrong_name_removes_nothing(stage, name, expected):
    created("website", {"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}})
    if name == "signalbox-state":
        boto3.client("cloudformation").delete_stack(StackName="signalbox-state")

    with pytest.raises(RejectedError, match=expected):
        destroy(name, "--yes")

    assert "signalbox" in stacks()


def test_json_cannot_ask(stage):
    with pytest.raises(RejectedError, match="--dry-run"):
        destroy("signalbox", "--json")


def stored_splits() -> DynamoSplits:
    return DynamoSplits(DynamoTable(boto3.client("dynamodb"), "Splits"))


def start_split(*sessions: SplitSession) -> None:
    stored_splits().create(split(Stage.SPLIT, *sessions), documents=[])


def end_splits() -> None:
    for one in stored_splits().every():
        assert isinstance(one, StoredSplit)
        stored_splits().forget(one)


def test_splits_end_before_their_functions_go(stage):
    start_split(session())

    def stop(command):
        end_splits()
        return {"session": command["session"], "phase": "ending"}

    stage.replies["stop"] = stop

    document = removed("signalbox")

    assert document["removed"][0] == {
        "kind": "session of a split",
        "name": "ann",
        "note": "ends, and lambda/meme-app gets its queues back",
    }
    assert stage.commands.count("stop") == 1
    assert stacks() == ["signalbox-state"]


def test_a_session_that_ends_by_itself_stops_no_removal(stage):
    start_split(session())

    def gone(_):
        end_splits()
        raise Refusal("lambda/meme-app has no session 'ann'")

    stage.replies["stop"] = gone

    assert removed("signalbox")["failed"] == []
    assert stacks() == ["signalbox-state"]


def test_a_split_that_does_not_end_keeps_the_stack(stage, monkeypatch):
    monkeypatch.setattr(splits, "SECONDS", 0)
    monkeypatch.setattr(splits.end_all, "__kwdefaults__", {"seconds": 0})
    start_split()

    document = removed("signalbox")

    (failure,) = document["failed"]
    assert (failure["name"], document["removed"]) == ("(ending)", [])
    assert "splits of lambda/meme-app have not ended" in failure["error"]
    assert stacks() == ["signalbox", "signalbox-state"]
    assert "xpublic" in queues()


def test_without_the_stack_splits_on_record_keep_what_their_consumers_read(stage):
    start_split(session())
    boto3.client("cloudformation").delete_stack(StackName="signalbox")

    document = removed("signalbox", "--everything", "--confirm", "signalbox")

    assert "deploy the stage again" in document["failed"][0]["error"]
    assert (document["removed"], stacks()) == ([], ["signalbox-state"])
    assert "xpublic" in queues()


def test_a_split_of_another_version_is_shown(stage):
    start_split()
    table = boto3.resource("dynamodb").Table("Splits")
    (item,) = (one for one in table.scan()["Items"] if "record" in one)
    table.put_item(Item={**item, "record": "{}"})

    shown = json.loads(destroy("signalbox", "--dry-run", "--json").stdout)

    assert shown["remove"][0]["name"] == "(a split of another version)"


def test_a_failure_is_reported_and_the_rest_is_removed(stage, monkeypatch):
    def refuse(_removal: removal.Removal, item: Any) -> None:
        raise removal.UnavailableError(f"{item.name} is in use")

    monkeypatch.setattr(removal.Removal, "_queue", refuse)

    document = removed("signalbox", "--everything", "--confirm", "signalbox")
    shown = destroy("signalbox", "--yes")

    (failure,) = document["failed"]
    assert failure["name"] == "xpublic"
    assert "xpublic is in use; correct the cause, then run this command again" in failure["error"]
    assert "signalbox_alice" not in users()
    assert stacks() == ["signalbox-state"]  # data stays while something else is left
    assert shown.exit_code == 1
    assert "error: queue xpublic: xpublic is in use" in shown.stderr


def test_a_failed_first_deployment_is_a_stage_by_the_tags_of_its_resources(stage):
    tagged = {"Type": "AWS::SNS::Topic", "Properties": {"Tags": tag_list({"signalbox:stage": "unborn"})}}
    created(
        "unborn", {"Resources": {"Topic": tagged, "Group": {"Type": "AWS::SNS::Topic", "Properties": {"Tags": []}}}}
    )

    assert [one["kind"] for one in removed("unborn")["removed"]] == ["stack"]
    assert stacks() == ["signalbox", "signalbox-state"]
