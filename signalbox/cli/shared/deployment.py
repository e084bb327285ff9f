"""The deployment that a command uses: the local stage of this folder, or a stage in AWS."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import boto3
from botocore.exceptions import ClientError

from signalbox.aws.shared.backoff import BACKOFF
from signalbox.aws.shared.throttled_keys import retry_throttled_keys
from signalbox.cli.shared.slow_calls import SLOW_CALLS
from signalbox.errors import RejectedError
from signalbox.local.session import LocalSession, StageMissing, stack_outputs
from signalbox.nearest import suggestion

if TYPE_CHECKING:
    from signalbox.aws.rendezvous.credentials import ClientCredentials

LOCAL = Path(".signalbox", "local.json")
DESTROYED = "destroyed"  # in that file, until the stage is deployed again
DEFAULT_STAGE = "signalbox"
WHICH_REGION = "the region is that of AWS_REGION, AWS_DEFAULT_REGION or the profile; `--stage` names the stage"
# The capabilities, and how the names of their outputs begin.
OUTPUTS_OF = {
    "rendezvous": ("Rendezvous", "Broker", "Bridge", "Client", "DeadLetter", "Lease", "Sweep"),
    "splitting": ("Split", "Control", "Temporary"),
    "exchange": ("Exchange", "Route"),
    "live": ("Live", "Session", "Deliver"),
    "history": ("History",),
}
ENDPOINT = "AWS_ENDPOINT_URL"  # read by the SDKs of AWS
OTHER_CREDENTIALS = ("AWS_PROFILE", "AWS_SESSION_TOKEN")
OF_EVERY_STAGE = "Capabilities"  # an output by which a stack is known as a stage


class StageOutputs(dict[str, str]):
    """The outputs of a stage; those of a capability that it does not have raise `RejectedError`."""

    def __missing__(self, name: str) -> NoReturn:
        raise RejectedError(missing_output(self, name))


def missing_output(outputs: Mapping[str, str], name: str) -> str:
    """Return why a stage has no output with this name, and the remedy."""
    owner = next((one for one, beginnings in OUTPUTS_OF.items() if name.startswith(beginnings)), "")
    present = capabilities_of(outputs)
    if owner and owner not in present:
        wanted = ",".join((*present, owner))
        return f"the stage has no {owner}: its capabilities are {', '.join(present)}; deploy capabilities={wanted}"
    return f"the stage has no output {name!r}: deploy it again to update it"


def capabilities_of(outputs: Mapping[str, str]) -> tuple[str, ...]:
    """Return the capabilities of the stage with these outputs."""
    return tuple(outputs.get(OF_EVERY_STAGE, ",".join(OUTPUTS_OF)).split(","))


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployed stage: its name, region, endpoint, outputs and the credentials of the caller."""

    outputs: Mapping[str, str]
    region: str
    rendezvous_url: str
    endpoint_url: str | None = None
    """The endpoint URL of AWS calls; None for AWS itself."""
    administrator: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The keys of the emulator's administrator; empty in AWS, which uses the standard credentials."""
    folder: Path | None = None
    """The folder of the local stage; None in AWS."""
    websocket_url: str = ""
    """The WebSocket URL of live; empty for a stage without live."""
    realm: str = ""
    """The live exchange of the local stage; empty in AWS."""
    tickets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The tickets of users of that exchange, by name."""
    stage: str = ""
    """The name of a stage in AWS; empty for the local stage."""

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The capabilities of the stage."""
        return capabilities_of(self.outputs)

    @property
    def place(self) -> str:
        """The stage as messages name it: by the folder of the local stage, or by account and region."""
        if self.endpoint_url is not None:
            return f"the local stage of {self.folder.parent if self.folder else self.endpoint_url}"
        arns = (value.split(":") for value in self.outputs.values() if value.startswith("arn:"))
        account = next((f"account {arn[4]}, " for arn in arns), "")
        return f"stage {self.stage} in {account}{self.region}"

    def session(self) -> boto3.Session:
        """Return a boto3 session for this deployment."""
        if self.endpoint_url is None:
            session = boto3.Session(region_name=self.region)
        else:
            session = LocalSession(self.endpoint_url, region=self.region, **self.administrator)
        SLOW_CALLS.announce(session.events, self.place)
        return _retrying(session)

    def program_environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the environment `given` in which the AWS SDK of a program reaches this deployment.

        For the local stage it gets the emulator's endpoint and keys, unless it has an endpoint of its own.
        """
        if self.endpoint_url is None or ENDPOINT in given:
            return dict(given)
        ours = {name: value for name, value in given.items() if name not in OTHER_CREDENTIALS}
        return ours | {
            ENDPOINT: self.endpoint_url,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ACCESS_KEY_ID": self.administrator["access_key_id"],
            "AWS_SECRET_ACCESS_KEY": self.administrator["secret_access_key"],
        }

    def session_of(self, credentials: "ClientCredentials") -> boto3.Session:
        """Return a boto3 session for this deployment with another user's access key."""
        key_id, secret = credentials.access_key_id, credentials.secret_access_key
        if self.endpoint_url is None:
            return _retrying(boto3.Session(key_id, secret, region_name=self.region))
        return _retrying(
            LocalSession(self.endpoint_url, region=self.region, access_key_id=key_id, secret_access_key=secret)
        )


def find_deployment(
    *, aws: bool = False, stage: str = DEFAULT_STAGE, folder: Path | None = None, is_being_destroyed: bool = False
) -> Deployment:
    """Return the stage in AWS with `aws`, else the local stage of `folder` or of its nearest parent that has one.

    Raises `RejectedError` if there is none, if it was destroyed, unless it still `is_being_destroyed`, and for the name
    of a stage without `aws`: it would be ignored.
    """
    if aws:
        return aws_deployment(aws_session(), stage=stage)
    if stage != DEFAULT_STAGE:
        raise RejectedError(f"--stage {stage} names a stage in AWS: give --aws too, or leave --stage out")
    start = (folder or Path.cwd()).resolve()
    for parent in (start, *start.parents):
        if (parent / LOCAL).is_file():
            local = json.loads((parent / LOCAL).read_text())
            if local.get(DESTROYED) and not is_being_destroyed:
                remedy = "`make up` or `signalbox local up` deploys it again"
                raise RejectedError(f"the local stage of {str(parent)!r} was destroyed: {remedy}")
            return local_deployment(local, folder=(parent / LOCAL).parent)
    raise RejectedError(
        f"no local stage runs in {str(start)!r} or above (there is no {LOCAL}): start one with `make up` or "
        "`signalbox local up`, or give --aws for a stage in AWS"
    )


def aws_session() -> boto3.Session:
    """Return a session with the standard AWS credentials."""
    # boto3 reads AWS_DEFAULT_REGION only; the other AWS tools use AWS_REGION.
    session = boto3.Session(region_name=os.environ.get("AWS_REGION"))
    if session.region_name is None:
        raise RejectedError("no AWS region is set: set AWS_REGION, or a region in the AWS profile")
    return _retrying(session)


def settings_session(region: str | None) -> boto3.Session:
    """Return a session with the standard AWS credentials, in the region of a deployment's settings if they name one."""
    return aws_session() if region is None else _retrying(boto3.Session(region_name=region))


def _near_stages(session: boto3.Session, stage: str) -> str:
    """Return the stage that may be meant; nothing if the caller may not list the stacks."""
    try:
        pages = session.client("cloudformation").get_paginator("describe_stacks").paginate()
        found = [stack for page in pages for stack in page["Stacks"]]
    except ClientError:
        return ""
    outputs = ((one["StackName"], {each["OutputKey"] for each in one.get("Outputs", ())}) for one in found)
    return suggestion(stage, (name for name, keys in outputs if OF_EVERY_STAGE in keys))


def _retrying(session: boto3.Session) -> boto3.Session:
    retry_throttled_keys(session.events, BACKOFF)
    return session


def local_deployment(local: Mapping[str, Any], *, folder: Path | None = None) -> Deployment:
    """Return the deployment that a local.json describes."""
    return Deployment(
        outputs=StageOutputs(local["outputs"]),
        region=local["region"],
        rendezvous_url=local.get("rendezvous_url", ""),
        endpoint_url=local["endpoint_url"],
        administrator=local["admin_credentials"],
        folder=folder,
        websocket_url=local.get("websocket_url", ""),
        realm=local.get("realm", ""),
        tickets={user["name"]: user["ticket"] for user in local.get("live_users", ())},
    )


def aws_deployment(session: boto3.Session, *, stage: str) -> Deployment:
    """Return a stage in the account and region of the standard AWS credentials.

    Raises `StageMissing` with the stages that there are, if the caller may list them.
    """
    try:
        outputs = stack_outputs(session, stage)
    except StageMissing as error:
        raise StageMissing(f"{error}{_near_stages(session, stage)}\n{WHICH_REGION}") from error
    return Deployment(
        outputs=StageOutputs(outputs),
        region=str(session.region_name),
        rendezvous_url=outputs.get("RendezvousUrl", ""),
        websocket_url=outputs.get("LiveWebSocketUrl", ""),
        stage=stage,
    )
