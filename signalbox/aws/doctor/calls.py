"""Translation of the errors of the doctor's calls."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    SSOError,
    TokenRetrievalError,
)

from signalbox.aws.shared.errors import reason
from signalbox.doctor.problems import CallDenied, CallFailed, CredentialsUnusable

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
EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})
REFUSED = frozenset(
    {"InvalidClientTokenId", "UnrecognizedClientException", "AuthFailure", "InvalidAccessKeyId", "InvalidToken"}
)
WRONG_SIGNATURE = frozenset(
    {"SignatureDoesNotMatch", "InvalidSignatureException", "RequestTimeTooSkewed", "IncompleteSignature"}
)
SIGN_IN = "sign in again (aws sso login, or new keys of your identity provider), then repeat the command"
SET_CREDENTIALS = "set AWS_PROFILE to a profile of `aws configure`, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"


@contextmanager
def call(permission: str) -> Iterator[None]:
    """Translate the errors of a call that needs `permission`.

    Raises `CallDenied`, `CallFailed` and `CredentialsUnusable`.
    """
    try:
        yield
    except ClientError as error:
        raise _translated(error, permission) from error
    except (NoCredentialsError, PartialCredentialsError) as error:
        raise CredentialsUnusable("there are no AWS credentials", remedy=SET_CREDENTIALS) from error
    except (SSOError, TokenRetrievalError, CredentialRetrievalError) as error:
        raise CredentialsUnusable(f"the session has ended or cannot be read: {error}", remedy=SIGN_IN) from error
    except BotoCoreError as error:
        raise CallFailed(reason(error, permission)) from error


def _translated(error: ClientError, permission: str) -> CallDenied | CallFailed | CredentialsUnusable:
    code = str(error.response.get("Error", {}).get("Code"))
    if code in DENIED:
        return CallDenied(permission)
    if code in EXPIRED:
        return CredentialsUnusable(f"the credentials have expired ({code})", remedy=SIGN_IN)
    if code in REFUSED:
        return CredentialsUnusable(f"AWS does not know these credentials ({code})", remedy=SET_CREDENTIALS)
    if code in WRONG_SIGNATURE:
        remedy = "check the secret key, and this machine's clock: AWS refuses requests that are 5 minutes off"
        return CredentialsUnusable(f"AWS refuses the signature ({code})", remedy=remedy)
    return CallFailed(reason(error, permission))
