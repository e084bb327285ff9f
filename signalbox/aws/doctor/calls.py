"""Translation of the errors of the doctor's calls."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.shared.errors import reason
from signalbox.doctor.problems import CallDenied, CallFailed

# A doctor answers within seconds, also without a network.
PATIENCE = Config(connect_timeout=4, read_timeout=8, retries={"total_max_attempts": 2, "mode": "standard"})
DENIED = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthorizationError",
        "UnauthorizedOperation",
        "NotAuthorized",
        "403",
        "AllAccessDisabled",
    }
)


@contextmanager
def call(permission: str) -> Iterator[None]:
    """Translate the errors of a call that needs `permission`. Raises `CallDenied` and `CallFailed`."""
    try:
        yield
    except ClientError as error:
        if str(error.response.get("Error", {}).get("Code")) in DENIED:
            raise CallDenied(permission) from error
        raise CallFailed(reason(error, permission)) from error
    except BotoCoreError as error:
        raise CallFailed(reason(error, permission)) from error
