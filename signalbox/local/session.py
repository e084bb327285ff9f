"""Sessions that talk to the emulator, and what stacks say about themselves."""

from typing import Any

import boto3

from signalbox.errors import RejectedError


class LocalSession(boto3.Session):
    """A session for one endpoint: boto3 can be told of it only client by client."""

    def __init__(self, endpoint_url: str, *, region: str, access_key_id: str, secret_access_key: str) -> None:
        super().__init__(access_key_id, secret_access_key, region_name=region)
        self._endpoint_url = endpoint_url

    def client(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - boto3's own signature, for its stubs
        """Make a client, for the emulator unless told otherwise."""
        # A resource makes its client through here too, and says None when it was not told.
        options["endpoint_url"] = options.get("endpoint_url") or self._endpoint_url
        return super().client(*arguments, **options)


def stack_outputs(session: boto3.Session, stack: str) -> dict[str, str]:
    """Return a stack's outputs by their keys."""
    cloudformation = session.client("cloudformation")
    try:
        described = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
    except cloudformation.exceptions.ClientError as error:
        if "does not exist" not in str(error):
            raise
        raise RejectedError(f"stage {stack!r} is not deployed in region {session.region_name!r}") from error
    return {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", [])}
