"""The deployment that a command uses: the local stage of this folder, or a stage in AWS."""

import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import ClientError

from signalbox import __version__
from signalbox.cli.shared.slow_calls import SLOW_CALLS
from signalbox.cli.shared.stage import VERSION_OUTPUT, say
from signalbox.clients.deployment import (
    OF_EVERY_STAGE,
    AwsDeployment,
    Deployment,
    LocalDeployment,
    aws_deployment,
    local_deployment,
    retrying,
)
from signalbox.clients.stage_session import StageMissing, new_session
from signalbox.errors import RejectedError
from signalbox.exchange.model.issuers import LOOPBACK
from signalbox.nearest import suggestion

LOCAL = Path(".signalbox", "local.json")
DESTROYED = "destroyed"  # in that file, until the stage is deployed again: what was removed
EVERYTHING = "everything"  # that with its data
DEFAULT_STAGE = "signalbox"
WHICH_REGION = "the region is that of AWS_REGION, AWS_DEFAULT_REGION or the profile; `--stage` names the stage"


def find_deployment(
    *, aws: bool = False, stage: str = DEFAULT_STAGE, folder: Path | None = None, is_being_destroyed: bool = False
) -> Deployment:
    """Return the stage in AWS with `aws`, else the local stage of `folder` or of its nearest parent that has one.

    A stage of another version than this command is named on standard error. Raises `RejectedError` if there is none, if
    it was destroyed, unless it still `is_being_destroyed`, and for the name of a stage without `aws`: it would be
    ignored.
    """
    found = (
        _deployment_in_aws(aws_session(), stage)
        if aws
        else _local_stage(stage, folder, is_being_destroyed=is_being_destroyed)
    )
    version = found.outputs.get(VERSION_OUTPUT, __version__)
    if version != __version__:
        _say_versions(found.place, version)
    return found


@cache  # a command finds its stage more than once
def _say_versions(place: str, version: str) -> None:
    say(f"{place} has version {version}, this command {__version__}: use the same, or deploy the stage again")


def _local_stage(stage: str, folder: Path | None, *, is_being_destroyed: bool) -> LocalDeployment:
    if stage != DEFAULT_STAGE:
        raise RejectedError(f"--stage {stage} names a stage in AWS: give --aws too, or leave --stage out")
    start = (folder or Path.cwd()).resolve()
    for parent in (start, *start.parents):
        if (parent / LOCAL).is_file():
            local = json.loads((parent / LOCAL).read_text())
            _refuse_others(parent / LOCAL, local)
            if DESTROYED in local and not is_being_destroyed:
                remedy = "`make up` or `signalbox local up` deploys it again"
                raise RejectedError(f"the local stage of {str(parent)!r} was destroyed: {remedy}")
            return local_deployment(local, folder=(parent / LOCAL).parent, watch=announce)
    raise RejectedError(
        f"no local stage runs in {str(start)!r} or above (there is no {LOCAL}): start one with `make up` or "
        "`signalbox local up`, or give --aws for a stage in AWS"
    )


def _refuse_others(path: Path, local: Mapping[str, Any]) -> None:
    """Refuse the stage of another user or machine, which would get tickets and tokens. Raises `RejectedError`."""
    if path.stat().st_uid not in (os.getuid(), 0):
        raise RejectedError(f"{path} belongs to another user, who could read what you send: work in another folder")
    for url in (local["endpoint_url"], local.get("websocket_url", "")):
        if url and urlsplit(url).hostname not in LOOPBACK:
            raise RejectedError(f"{path} names {url!r}, and a local stage is on this machine: remove the file")


def aws_session() -> boto3.Session:
    """Return a session with the standard AWS credentials."""
    # boto3 reads AWS_DEFAULT_REGION only; the other AWS tools use AWS_REGION.
    session = new_session(region=os.environ.get("AWS_REGION"))
    if session.region_name is None:
        raise RejectedError("no AWS region is set: set AWS_REGION, or a region in the AWS profile")
    return retrying(session)


def settings_session(region: str | None) -> boto3.Session:
    """Return a session with the standard AWS credentials, in the region of a deployment's settings if they name one."""
    return aws_session() if region is None else retrying(new_session(region=region))


def _deployment_in_aws(session: boto3.Session, stage: str) -> AwsDeployment:
    """Return a stage. Raises `StageMissing` with the stages that there are, if the caller may list them."""
    try:
        return aws_deployment(session, stage=stage, watch=announce)
    except StageMissing as error:
        raise StageMissing(f"{error}{_near_stages(session, stage)}\n{WHICH_REGION}") from error


def announce(session: boto3.Session, place: str) -> None:
    """Print a line on a terminal if the first call of a session takes long."""
    SLOW_CALLS.announce(session.events, place)


def _near_stages(session: boto3.Session, stage: str) -> str:
    """Return the stage that may be meant; nothing if the caller may not list the stacks."""
    try:
        pages = session.client("cloudformation").get_paginator("describe_stacks").paginate()
        found = [stack for page in pages for stack in page["Stacks"]]
    except ClientError:
        return ""
    outputs = ((one["StackName"], {each["OutputKey"] for each in one.get("Outputs", ())}) for one in found)
    return suggestion(stage, (name for name, keys in outputs if OF_EVERY_STAGE in keys))
