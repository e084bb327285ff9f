"""The splitting construct: permissions and times that follow from the settings."""

from collections.abc import Iterator

import pytest

from lambdas.splitting import control_wiring
from lambdas.splitting.control import REPEATED_AFTER
from signalbox.aws.splitting.queues import RETURN_VISIBILITY_SECONDS
from signalbox.queues import QueueName
from signalbox.splitting.control import commands
from signalbox.splitting.control.chains import GRACE
from signalbox.splitting.control.command_handlers import FILTER_TIME
from signalbox.splitting.control.effect_executor import RETURNING_FOR
from signalbox.splitting.control.reconcile_loop import LATER, RUN_LENGTH
from signalbox.splitting.forwarding.decider import RECORD_AGE
from signalbox.splitting.queues.policy import Splittable, policy_document
from stacks.settings.config import settings
from stacks.shared.command_queue import TIMEOUT_SECONDS
from tests.infrastructure.other_settings import QUEUE_KEY as KEY
from tests.infrastructure.templates import Templates, as_list, templates

SQS, LAMBDA = "arn:<Partition>:sqs:<Region>:<AccountId>", "arn:<Partition>:lambda:<Region>:<AccountId>"
FUNCTION = f"{LAMBDA}:function:meme-app"
SQS_VISIBILITY_SECONDS = 30  # of a queue whose owner chose none


def allowed(stage: Templates, identity: str) -> Iterator[tuple[str, str, object]]:
    """Yield each action, resource and condition of an identity's policy."""
    for name, statement in stage.statements():
        if name in (f"{identity}/DefaultPolicy", identity):
            for action in as_list(statement["Action"]):
                for resource in as_list(statement["Resource"]):
                    yield action, stage.text(resource), statement.get("Condition")


def resources(stage: Templates, identity: str, *, action: str) -> set[str]:
    return {resource for found, resource, _ in allowed(stage, identity) if found == action}


def conditions(stage: Templates, identity: str, *, action: str) -> list[object]:
    return [condition for found, _, condition in allowed(stage, identity) if found == action]


def test_the_function_timeout_exceeds_the_audit_timeout():
    assert control_wiring.AUDIT_TIMEOUT.total_seconds() < TIMEOUT_SECONDS


def test_filters_take_half_of_the_function_timeout():
    assert FILTER_TIME.total_seconds() == TIMEOUT_SECONDS / 2


def test_an_audit_covers_the_longest_history():
    (retention,) = (setting for setting in settings() if setting.name == "history_retention_days")

    assert retention.maximum == commands.MAXIMUM_AUDIT_DAYS


def test_the_local_stage_can_split_the_queues_of_its_demo():
    stage = templates(local=True)

    assert f"{SQS}:demo-*" in resources(stage, "Splitting/SplitRole", action="sqs:ReceiveMessage")
    assert f"{LAMBDA}:function:demo-*" in resources(
        stage, "Splitting/ControlRole", action="lambda:UpdateFunctionConfiguration"
    )


def test_queues_are_read_by_name_and_by_tag(otherwise):
    found = {
        (resource, str(condition))
        for action, resource, condition in allowed(otherwise, "Splitting/SplitRole")
        if action == "sqs:ReceiveMessage"
    }

    tagged = {"StringEquals": {"aws:ResourceTag/may": "be split"}}
    assert found == {
        (f"{SQS}:orders*", "None"),
        (f"{SQS}:bills.fifo", "None"),
        (f"{SQS}:*", str(tagged)),
    }


def test_only_control_sends_to_originals(otherwise):
    originals = {f"{SQS}:orders*", f"{SQS}:bills.fifo"}

    assert originals <= resources(otherwise, "Splitting/ControlRole", action="sqs:SendMessage")
    assert not originals & resources(otherwise, "Splitting/SplitRole", action="sqs:SendMessage")
    assert not originals & resources(otherwise, "Splitting/ControlRole", action="sqs:ReceiveMessage")


def test_the_roles_together_equal_the_printed_policy(otherwise):
    splittable = Splittable(
        arn_prefix=f"{SQS}:",
        queues=(QueueName("bills.fifo"),),
        dead_letter_queues=(QueueName("dead"),),
        key_arns=(KEY,),
        prefix="tmp-",
    )
    printed = {
        (action, resource)
        for statement in policy_document(splittable)["Statement"]
        for action in as_list(statement["Action"])
        for resource in as_list(statement["Resource"])
    }

    ours = {
        (action, resource.replace("dead-*", "dead"))
        for role in ("Splitting/SplitRole", "Splitting/ControlRole")
        for action, resource, _ in allowed(otherwise, role)
    }
    about = {resource for _, resource in printed}
    assert {(action, resource) for action, resource in ours if resource in about} == printed


def test_only_split_reads_metadata_of_objects_in_the_named_buckets(otherwise, stage):
    split, buckets = "Splitting/SplitRole", {f"arn:<Partition>:s3:::{name}" for name in ("uploads", "demo-*")}

    found = {(action, resource) for action, resource, _ in allowed(otherwise, split) if action.startswith("s3:")}
    objects = {(f"s3:{action}", f"{bucket}/*") for bucket in buckets for action in ("GetObject", "GetObjectVersion")}
    kept = {("s3:PutObject", "History/kept/*")}
    assert found == objects | kept | {("s3:ListBucket", bucket) for bucket in buckets}
    assert not buckets & resources(otherwise, "Splitting/ControlRole", action="s3:ListBucket")
    assert {one[:2] for one in allowed(stage, split) if one[0].startswith("s3:")} == kept


def test_keys_of_queues_are_used_through_sqs(otherwise):
    for identity in ("Splitting/SplitRole", "Splitting/ControlRole", "Splitting/UserPolicy"):
        assert resources(otherwise, identity, action="kms:Encrypt") == {KEY}
        (condition,) = conditions(otherwise, identity, action="kms:Encrypt")
        assert otherwise.text(condition["StringEquals"]["kms:ViaService"]) == "sqs.<Region>.amazonaws.com"


@pytest.mark.parametrize("action", ["Create", "Update", "Delete"])
def test_mappings_are_changed_for_the_named_functions_and_split_only(otherwise, action):
    found = conditions(otherwise, "Splitting/ControlRole", action=f"lambda:{action}EventSourceMapping")
    # Mappings with the tags of the stage may be deleted for functions of earlier deployments.
    (condition,) = (one for one in found if "ArnLike" in one and "StringEquals" not in one)

    functions = {otherwise.text(function) for function in condition["ArnLike"]["lambda:FunctionArn"]}
    assert functions == {"Splitting/Split", FUNCTION, f"{FUNCTION}:*"}


def test_consumers_are_changed_by_name(otherwise):
    control = "Splitting/ControlRole"

    assert resources(otherwise, control, action="lambda:UpdateFunctionConfiguration") == {FUNCTION, f"{FUNCTION}:*"}
    assert resources(otherwise, control, action="ecs:UpdateService") == {
        "arn:<Partition>:ecs:<Region>:<AccountId>:service/prod/mailer"
    }
    assert resources(otherwise, control, action="ssm:PutParameter") == {
        f"arn:<Partition>:ssm:<Region>:<AccountId>:parameter/{name}" for name in ("mail/queue", "plain*")
    }


def test_roles_are_passed_to_ecs_tasks_only(otherwise):
    roles = {f"arn:<Partition>:iam::<AccountId>:role/{name}" for name in ("meme-app", "mailer-*")}

    assert resources(otherwise, "Splitting/ControlRole", action="iam:PassRole") == roles
    to_tasks = {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}
    assert set(map(str, conditions(otherwise, "Splitting/ControlRole", action="iam:PassRole"))) == {str(to_tasks)}


def test_discovery_reads_the_policies_of_the_named_roles(otherwise):
    roles = {f"arn:<Partition>:iam::<AccountId>:role/{name}" for name in ("meme-app", "mailer-*")}

    assert resources(otherwise, "Splitting/ControlRole", action="iam:GetRolePolicy") == roles
    assert resources(otherwise, "Splitting/ControlRole", action="iam:GetPolicyVersion") == {
        "arn:<Partition>:iam::<AccountId>:policy/*",
        "arn:<Partition>:iam::aws:policy/*",
    }


def test_an_ordered_session_ends_within_two_minutes_of_the_last_kill(stage):
    split = stage.every("AWS::Lambda::Function")["Splitting/Split"]["Properties"]["Timeout"]
    forwarded = SQS_VISIBILITY_SECONDS + 3 * (split + RECORD_AGE.total_seconds())

    assert REPEATED_AFTER.total_seconds() == RETURN_VISIBILITY_SECONDS
    assert REPEATED_AFTER.total_seconds() + forwarded + 2 * LATER.total_seconds() < 100


def test_a_command_of_a_killed_function_comes_again_after_a_run_and_its_lock_for_the_next():
    assert RUN_LENGTH + RETURNING_FOR + LATER + GRACE < REPEATED_AFTER


def test_times_and_names_follow_from_the_settings(otherwise):
    split, control = (otherwise.every("AWS::Lambda::Function")[f"Splitting/{name}"] for name in ("Split", "Control"))
    queue = otherwise.every("AWS::SQS::Queue")["Splitting/Commands"]["Properties"]

    assert split["Properties"]["Timeout"] == 45
    assert split["Properties"]["Environment"]["Variables"]["SPLIT_TIMEOUT_SECONDS"] == "45"
    assert queue["QueueName"] == "trial-split-control"
    assert control["Properties"]["Timeout"] < queue["VisibilityTimeout"] < 60
    assert otherwise.every("AWS::SQS::Queue")["Splitting/Replies"]["Properties"]["QueueName"] == "trial-split-reply"
    assert resources(otherwise, "Splitting/SplitRole", action="sqs:SendMessage") == {
        f"{SQS}:tmp-*",
        "Splitting/DeadLetters",
        "HistoryOverflow/Queue",
    }
