"""The stage that a client uses: the local stage of a folder, or a stage in AWS."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import boto3

from signalbox.aws.rendezvous.credentials import ClientCredentials
from signalbox.aws.shared.settings import BACKOFF
from signalbox.aws.shared.throttled_keys import retry_throttled_keys
from signalbox.clients.stage_session import LocalSession, new_session, stack_outputs
from signalbox.errors import RejectedError

ENDPOINT = "AWS_ENDPOINT_URL"  # read by the SDKs of AWS
OTHER_CREDENTIALS = ("AWS_PROFILE", "AWS_SESSION_TOKEN")
# The capabilities, and how the names of their outputs begin.
OUTPUTS_OF = {
    "rendezvous": ("Rendezvous", "Broker", "Bridge", "Client", "DeadLetter", "Lease", "Sweep"),
    "splitting": ("Split", "Control", "Temporary"),
    "exchange": ("Exchange", "Route"),
    "live": ("Live", "Session", "Deliver"),
    "history": ("History",),
}
OF_EVERY_STAGE = "Capabilities"  # an output by which a stack is known as a stage
FRONT = "front"  # in that output: rendezvous without data, in front of an existing broker
Watch = Callable[[boto3.Session, str], None]
"""Called with each session of a deployment, and with the stage as messages name it."""


class StageOutputs(dict[str, str]):
    """The outputs of a stage; those of a capability that it does not have raise `RejectedError`."""

    def __missing__(self, name: str) -> NoReturn:
        raise RejectedError(missing_output(self, name))


def missing_output(outputs: Mapping[str, str], name: str) -> str:
    """Return why a stage has no output with this name, and the remedy."""
    owner = next((one for one, beginnings in OUTPUTS_OF.items() if name.startswith(beginnings)), "")
    present = capabilities_of(outputs)
    if owner == "rendezvous" and FRONT in present:
        return "the stage is a front of an existing broker, which has the proxies, the pages and the statistics"
    if owner and owner not in present:
        wanted = ",".join((*present, owner))
        return f"the stage has no {owner}: its capabilities are {', '.join(present)}; deploy capabilities={wanted}"
    return f"the stage has no output {name!r}: deploy it again to update it"


def capabilities_of(outputs: Mapping[str, str]) -> tuple[str, ...]:
    """Return the capabilities of the stage with these outputs."""
    return tuple(outputs.get(OF_EVERY_STAGE, ",".join(OUTPUTS_OF)).split(","))


def watch_nothing(_session: boto3.Session, _place: str) -> None:
    """Leave a session as it is."""


@dataclass(frozen=True, slots=True)
class AwsDeployment:
    """A stage in AWS, which is used with the standard credentials, or with those of a user.

    `realm` is the live exchange to join if none is named; empty if there is no such exchange.
    """

    outputs: Mapping[str, str]
    region: str
    rendezvous_url: str
    websocket_url: str = ""
    """The WebSocket URL of live; empty for a stage without live."""
    realm: str = ""
    stage: str = ""
    clients_url: str = ""
    """The URL of rendezvous for clients over HTTP; empty for a stage without rendezvous."""
    watch: Watch = field(default=watch_nothing, repr=False, compare=False)

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The capabilities of the stage."""
        return capabilities_of(self.outputs)

    @property
    def place(self) -> str:
        """The stage as messages name it: by its account and region."""
        arns = (value.split(":") for value in self.outputs.values() if value.startswith("arn:"))
        account = next((f"account {arn[4]}, " for arn in arns), "")
        return f"stage {self.stage} in {account}{self.region}"

    def session(self) -> boto3.Session:
        """Return a boto3 session for this deployment."""
        return self._prepared(new_session(region=self.region))

    def session_of(self, credentials: ClientCredentials) -> boto3.Session:
        """Return a boto3 session for this deployment with another user's access key."""
        key = (credentials.access_key_id, credentials.secret_access_key)
        return self._prepared(new_session(*key, region=self.region))

    def program_environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the environment `given`, in which the AWS SDK of a program reaches this deployment."""
        return dict(given)

    def _prepared(self, session: boto3.Session) -> boto3.Session:
        self.watch(session, self.place)
        return retrying(session)


@dataclass(frozen=True, slots=True)
class LocalDeployment:
    """The local stage of a folder: its emulator's endpoint, and the keys of its administrator.

    `realm` is its live exchange, and `tickets` are those of that exchange's users, by name.
    """

    outputs: Mapping[str, str]
    region: str
    rendezvous_url: str
    endpoint_url: str
    folder: Path
    clients_url: str = ""
    websocket_url: str = ""
    realm: str = ""
    administrator: Mapping[str, str] = field(default_factory=dict, repr=False)
    tickets: Mapping[str, str] = field(default_factory=dict, repr=False)
    watch: Watch = field(default=watch_nothing, repr=False, compare=False)

    @property
    def capabilities(self) -> tuple[str, ...]:
        """The capabilities of the stage."""
        return capabilities_of(self.outputs)

    @property
    def place(self) -> str:
        """The stage as messages name it: by its folder."""
        return f"the local stage of {self.folder.parent}"

    def session(self) -> boto3.Session:
        """Return a boto3 session for this deployment."""
        return self._session(**self.administrator)

    def session_of(self, credentials: ClientCredentials) -> boto3.Session:
        """Return a boto3 session for this deployment with another user's access key."""
        key_id, secret = credentials.access_key_id, credentials.secret_access_key
        return self._session(access_key_id=key_id, secret_access_key=secret)

    def program_environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the environment `given` in which the AWS SDK of a program reaches this deployment.

        It gets the emulator's endpoint and keys, unless it has an endpoint of its own.
        """
        if ENDPOINT in given:
            return dict(given)
        ours = {name: value for name, value in given.items() if name not in OTHER_CREDENTIALS}
        return ours | {
            ENDPOINT: self.endpoint_url,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ACCESS_KEY_ID": self.administrator["access_key_id"],
            "AWS_SECRET_ACCESS_KEY": self.administrator["secret_access_key"],
        }

    def _session(self, **key: str) -> boto3.Session:
        session = LocalSession(self.endpoint_url, region=self.region, **key)
        self.watch(session, self.place)
        return retrying(session)


Deployment = AwsDeployment | LocalDeployment


def local_deployment(local: Mapping[str, Any], *, folder: Path, watch: Watch = watch_nothing) -> LocalDeployment:
    """Return the deployment that a local.json in a folder describes."""
    return LocalDeployment(
        outputs=StageOutputs(local["outputs"]),
        region=local["region"],
        rendezvous_url=local.get("rendezvous_url", ""),
        clients_url=local.get("rendezvous_clients_url", ""),
        endpoint_url=local["endpoint_url"],
        folder=folder,
        websocket_url=local.get("websocket_url", ""),
        realm=local.get("realm", ""),
        administrator=local["admin_credentials"],
        tickets={user["name"]: user["ticket"] for user in local.get("live_users", ())},
        watch=watch,
    )


def aws_deployment(session: boto3.Session, *, stage: str, watch: Watch = watch_nothing) -> AwsDeployment:
    """Return a stage in the account and region of a session. Raises `StageMissing`."""
    outputs = stack_outputs(session, stage)
    return AwsDeployment(
        outputs=StageOutputs(outputs),
        region=str(session.region_name),
        rendezvous_url=outputs.get("RendezvousUrl", ""),
        clients_url=outputs.get("RendezvousClientsUrl", ""),
        websocket_url=outputs.get("LiveWebSocketUrl", ""),
        stage=stage,
        watch=watch,
    )


def require_local(deployment: Deployment) -> LocalDeployment:
    """Return a deployment that is the local stage. Raises `RejectedError`."""
    if isinstance(deployment, AwsDeployment):
        raise RejectedError(f"{deployment.place} is not a local stage")
    return deployment


def retrying(session: boto3.Session) -> boto3.Session:
    """Let a session's clients repeat calls that a throttled key refused; return the session."""
    retry_throttled_keys(session.events, BACKOFF)
    return session
