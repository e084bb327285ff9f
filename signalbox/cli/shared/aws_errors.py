"""AWS's errors in the words of the command: the setting or permission that is missing, and what to do."""

import re
from collections.abc import Mapping

from botocore import exceptions

from signalbox.aws.doctor.probes import DENIED
from signalbox.aws.shared.errors import PASSING

LOOPBACK = "127.0.0.1"
EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "RequestExpired"})
REFUSED = frozenset(
    {"InvalidClientTokenId", "UnrecognizedClientException", "AuthFailure", "InvalidAccessKeyId", "InvalidToken"}
)
WRONG_SIGNATURE = frozenset(
    {"SignatureDoesNotMatch", "InvalidSignatureException", "RequestTimeTooSkewed", "IncompleteSignature"}
)
SIGN_IN = "sign in again (aws sso login, or new keys of your identity provider), then repeat the command"
SET_CREDENTIALS = "set AWS_PROFILE to a profile of `aws configure`, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
# IAM's own words: «User: ARN is not authorized to perform: ACTION on resource: ARN because …».
NOT_AUTHORIZED = re.compile(
    r"(?:User: (?P<who>\S+) is )?not authorized to perform: (?P<action>[\w:-]+)(?: on resource: (?P<resource>\S+))?"
)
MISSING_SETTINGS: Mapping[type[exceptions.BotoCoreError], str] = {
    exceptions.NoCredentialsError: f"there are no AWS credentials: {SET_CREDENTIALS}",
    exceptions.PartialCredentialsError: f"the AWS credentials are not complete: {SET_CREDENTIALS}",
    exceptions.ProfileNotFound: "AWS_PROFILE names no profile: correct it, or create the profile with `aws configure`",
    exceptions.NoRegionError: "no AWS region is set: set AWS_REGION, or a region in the AWS profile",
}


def explained(error: exceptions.BotoCoreError | exceptions.ClientError) -> str:
    """Return an error of AWS as text: its cause first, then what to do, then AWS's own words where they add to it."""
    if isinstance(error, exceptions.ClientError):
        return _explained_answer(error)
    if isinstance(
        error, (exceptions.EndpointConnectionError, exceptions.ConnectTimeoutError, exceptions.ReadTimeoutError)
    ):
        return _explained_silence(error)
    if isinstance(error, (exceptions.SSOError, exceptions.TokenRetrievalError, exceptions.CredentialRetrievalError)):
        return f"the AWS session has ended or cannot be read: {SIGN_IN}\nAWS: {error}"
    missing = next((text for kind, text in MISSING_SETTINGS.items() if isinstance(error, kind)), None)
    return missing or f"AWS: {error}"


def _explained_silence(error: exceptions.BotoCoreError) -> str:
    endpoint = str(error.kwargs.get("endpoint_url", ""))
    if LOOPBACK in endpoint:
        return f"the local stage does not respond at {endpoint}: `signalbox local status` shows whether it runs"
    return f"AWS does not respond at {endpoint}: check the network, AWS_REGION and the proxy settings"


def _explained_answer(error: exceptions.ClientError) -> str:
    details = error.response.get("Error", {})
    code, message = str(details.get("Code")), str(details.get("Message"))
    if code in EXPIRED:
        return f"the AWS credentials have expired: {SIGN_IN}"
    if code in REFUSED:
        return (
            f"AWS does not know these credentials ({code}): they were deleted or rotated, are of another account, or "
            f"the account has not enabled the region; {SET_CREDENTIALS}"
        )
    if code in WRONG_SIGNATURE:
        return (
            f"AWS refuses the signature ({code}): the secret key is wrong, or this machine's clock is\nAWS: {message}"
        )
    if code in DENIED:
        return _explained_denial(error, code, message)
    if code in PASSING:
        return f"AWS limits these calls at the moment ({code} at {error.operation_name}): repeat the command"
    return f"AWS: {code} at {error.operation_name}: {message}"


def _explained_denial(error: exceptions.ClientError, code: str, message: str) -> str:
    found = NOT_AUTHORIZED.search(message)
    if found is None:
        return f"your AWS credentials may not call {error.operation_name} ({code})\nAWS: {message}"
    who = found["who"] or "your AWS credentials"
    where = f" on {found['resource']}" if found["resource"] else ""
    return (
        f"{who} may not {found['action']}{where}: this permission is missing, or the stage is another's "
        "(--stage, AWS_PROFILE, AWS_REGION)"
    )
