"""Finds the deployment that a command talks to: the local stage of this folder, or a stage in AWS."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3

from signalbox.errors import RejectedError
from signalbox.local.session import LocalSession, stack_outputs

if TYPE_CHECKING:
    from signalbox.aws.rendezvous.credentials import ClientCredentials

LOCAL = Path(".signalbox", "local.json")


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployed stage as the commands see it: what it is called, where it is, and who they are there."""

    outputs: Mapping[str, str]
    region: str
    rendezvous_url: str
    endpoint_url: str | None = None
    """Where AWS calls go; None for AWS itself."""
    administrator: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The emulator's administrator; empty in AWS, where the standard credentials count."""
    folder: Path | None = None
    """Where the local stage keeps what belongs to it; None in AWS."""
    websocket_url: str = ""
    """Where clients of live connect; empty where a stage has no live."""
    realm: str = ""
    """The exchange that the local stage has for trials; empty in AWS."""
    tickets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The tickets of users of that exchange, by name."""

    def session(self) -> boto3.Session:
        """Return a session whose clients talk to this deployment."""
        if self.endpoint_url is None:
            return boto3.Session(region_name=self.region)
        return LocalSession(self.endpoint_url, region=self.region, **self.administrator)

    def session_of(self, credentials: "ClientCredentials") -> boto3.Session:
        """Return a session like `session`, in which somebody else's key counts."""
        key_id, secret = credentials.access_key_id, credentials.secret_access_key
        if self.endpoint_url is None:
            return boto3.Session(key_id, secret, region_name=self.region)
        return LocalSession(self.endpoint_url, region=self.region, access_key_id=key_id, secret_access_key=secret)


def find_deployment(*, aws: bool = False, stage: str = "signalbox", folder: Path | None = None) -> Deployment:
    """Return the stage in AWS if asked to, else the local stage of this folder or the nearest one above."""
    if aws:
        return aws_deployment(aws_session(), stage=stage)
    start = (folder or Path.cwd()).resolve()
    for parent in (start, *start.parents):
        if (parent / LOCAL).is_file():
            return local_deployment(json.loads((parent / LOCAL).read_text()), folder=(parent / LOCAL).parent)
    raise RejectedError(
        f"no local stage runs in {str(start)!r} or above (there is no {LOCAL}): start one with `make up` or "
        "`signalbox local up`, or give --aws for a stage in AWS"
    )


def aws_session() -> boto3.Session:
    """Return a session with the standard AWS credentials."""
    # boto3 reads AWS_DEFAULT_REGION only; the other AWS tools, and people, say AWS_REGION.
    session = boto3.Session(region_name=os.environ.get("AWS_REGION"))
    if session.region_name is None:
        raise RejectedError("no AWS region is set: give AWS_REGION, or a region in the AWS profile")
    return session


def local_deployment(local: Mapping[str, Any], *, folder: Path | None = None) -> Deployment:
    """Return the deployment that a local.json describes."""
    return Deployment(
        outputs=local["outputs"],
        region=local["region"],
        rendezvous_url=local["rendezvous_url"],
        endpoint_url=local["endpoint_url"],
        administrator=local["admin_credentials"],
        folder=folder,
        websocket_url=local.get("websocket_url", ""),
        realm=local.get("realm", ""),
        tickets={user["name"]: user["ticket"] for user in local.get("live_users", ())},
    )


def aws_deployment(session: boto3.Session, *, stage: str) -> Deployment:
    """Return a stage in the account and region of the standard AWS credentials."""
    outputs = stack_outputs(session, stage)
    return Deployment(
        outputs=outputs,
        region=str(session.region_name),
        rendezvous_url=outputs["RendezvousUrl"],
        websocket_url=outputs.get("LiveWebSocketUrl", ""),
    )
