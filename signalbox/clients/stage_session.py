"""boto3 sessions for AWS and the emulator, and the outputs of CloudFormation stacks."""

from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.loaders import Loader
from botocore.session import Session, get_session

from signalbox.errors import RejectedError

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import StackTypeDef


class StageMissing(RejectedError):
    """Raised when a stage is not deployed in its region."""


@cache
def _descriptions() -> Loader:
    """Return the descriptions of services for all sessions: to read those of four services takes 0.1 s."""
    loader: Loader = get_session().get_component("data_loader")
    return loader


def _core() -> Session:
    core = get_session()
    core.register_component("data_loader", _descriptions())
    return core


def new_session(key_id: str | None = None, secret: str | None = None, *, region: str | None) -> boto3.Session:
    """Return a session with an access key, or with the standard credentials."""
    return boto3.Session(key_id, secret, region_name=region, botocore_session=_core())


class LocalSession(boto3.Session):
    """A session whose clients use one endpoint URL, which boto3 accepts for each client only."""

    def __init__(
        self,
        endpoint_url: str,
        *,
        region: str,
        access_key_id: str,
        secret_access_key: str,
        session_token: str | None = None,
    ) -> None:
        super().__init__(access_key_id, secret_access_key, session_token, region, _core())
        self._endpoint_url = endpoint_url

    def client(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - boto3's own signature, for its stubs
        """Return a client for the session's endpoint, unless `endpoint_url` is given."""
        # Session.resource calls this too, with None if it has no endpoint.
        options["endpoint_url"] = options.get("endpoint_url") or self._endpoint_url
        return super().client(*arguments, **options)


def stack_outputs(session: boto3.Session, stack: str, *, config: Config | None = None) -> dict[str, str]:
    """Return a stack's outputs by their keys. Raises `StageMissing` if the stack does not exist."""
    described = found_stack(session.client("cloudformation", config=config), stack)
    if described is None:
        raise StageMissing(f"stage {stack!r} is not deployed in region {session.region_name!r}")
    return outputs_of(described)


def found_stack(cloudformation: "CloudFormationClient", name: str) -> "StackTypeDef | None":
    """Return the description of a stack, or None if it does not exist."""
    try:
        return cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    except ClientError as error:
        if "does not exist" not in str(error):
            raise
        return None


def outputs_of(stack: "StackTypeDef") -> dict[str, str]:
    """Return the outputs in the description of a stack by their keys."""
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", ())}
