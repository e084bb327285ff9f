"""The deployment of a synthesized app into the emulator: its assets go to S3, then CloudFormation creates its stacks.

The CDK CLI does the same on AWS. It compresses the assets, makes a change set for each stack, and asks every five
seconds whether a stack is complete, which takes longer than the emulator's own work.
"""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
from botocore.exceptions import ClientError

from signalbox.clients.stage_session import found_stack
from signalbox.errors import UnavailableError
from signalbox.local.assembly.artifacts import Asset, DefaultPlace, StackArtifact, artifacts_of, assets, stack_artifacts
from signalbox.local.progress import Say

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import StackEventTypeDef

POLL_SECONDS = 0.1
UPLOADS = 4
CAPABILITIES = ("CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND")
# The states of a stack that was never complete: CloudFormation can only delete it.
NEVER_COMPLETE = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED", "REVIEW_IN_PROGRESS")
COMPLETE = ("CREATE_COMPLETE", "UPDATE_COMPLETE")
IN_PROGRESS, FAILED, CAUSES = "_IN_PROGRESS", "_FAILED", 5
NO_UPDATES = "No updates are to be performed"


def deploy(assembly: Path, session: boto3.Session, place: DefaultPlace, say: Say) -> None:
    """Upload the assets that S3 does not have, and create or update each stack after those on which it depends.

    Raises `UnavailableError` with the first causes if a stack fails; CloudFormation then restores its former state.
    """
    artifacts = artifacts_of(assembly)
    say("the assets")
    with ThreadPoolExecutor(UPLOADS) as threads:
        list(threads.map(lambda asset: _upload(session, asset), assets(assembly, artifacts, place)))
    for artifact in stack_artifacts(artifacts, place):
        cloudformation = session.client("cloudformation", region_name=artifact.region)
        try:
            _deploy(cloudformation, artifact, say)
        except ClientError as error:
            raise _failure(artifact.name, [str(error)]) from error


def _upload(session: boto3.Session, asset: Asset) -> None:
    s3 = session.client("s3", region_name=asset.region)
    try:
        s3.head_object(Bucket=asset.bucket, Key=asset.key)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("404", "NoSuchKey", "NotFound"):
            raise
        s3.put_object(Bucket=asset.bucket, Key=asset.key, Body=asset.content())


def _deploy(cloudformation: "CloudFormationClient", artifact: StackArtifact, say: Say) -> None:
    """Create or update a stack, and wait until it is complete."""
    stack = found_stack(cloudformation, artifact.name)
    if stack is not None and stack["StackStatus"] in NEVER_COMPLETE:
        cloudformation.delete_stack(StackName=artifact.name)
        _wait(cloudformation, stack["StackId"], say)
        stack = None
    request: dict[str, Any] = {
        "StackName": artifact.name,
        "TemplateURL": artifact.template_url,
        "Capabilities": CAPABILITIES,
        "Tags": [{"Key": key, "Value": value} for key, value in artifact.tags.items()],
    }
    if stack is None:
        stack_id = cloudformation.create_stack(EnableTerminationProtection=artifact.is_protected, **request)["StackId"]
    else:
        stack_id = stack["StackId"]
        if stack.get("EnableTerminationProtection", False) != artifact.is_protected:
            cloudformation.update_termination_protection(
                StackName=stack_id, EnableTerminationProtection=artifact.is_protected
            )
        if not _is_updating(cloudformation, request):
            return
    status = _wait(cloudformation, stack_id, say)
    if status not in COMPLETE:
        raise _failure(artifact.name, _causes(cloudformation, stack_id))


def _is_updating(cloudformation: "CloudFormationClient", request: dict[str, Any]) -> bool:
    """Begin an update; return False if the stack is as requested."""
    try:
        cloudformation.update_stack(**request)
    except ClientError as error:
        if NO_UPDATES not in str(error):
            raise
        return False
    return True


def _wait(cloudformation: "CloudFormationClient", stack_id: str, say: Say) -> str:
    """Wait until nothing happens to a stack; return its status."""
    while (status := cloudformation.describe_stacks(StackName=stack_id)["Stacks"][0]["StackStatus"]).endswith(
        IN_PROGRESS
    ):
        say(_line(cloudformation.describe_stack_events(StackName=stack_id)["StackEvents"][0]))
        time.sleep(POLL_SECONDS)
    return status


def _line(event: "StackEventTypeDef") -> str:
    parts = (event.get("ResourceStatus"), event.get("LogicalResourceId"), event.get("ResourceStatusReason"))
    return " ".join(str(part) for part in parts if part)


def _causes(cloudformation: "CloudFormationClient", stack_id: str) -> list[str]:
    """Return the first failures of a stack's last deployment, the earliest first."""
    events: list[StackEventTypeDef] = []
    for page in cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack_id):
        events += page["StackEvents"]
    causes = [_line(event) for event in reversed(events) if event.get("ResourceStatus", "").endswith(FAILED)]
    return causes[:CAUSES]


def _failure(stack: str, causes: Sequence[str]) -> UnavailableError:
    return UnavailableError("\n".join([f"the deployment of {stack} failed:", *causes]))
