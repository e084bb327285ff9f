"""AWS's errors as the command explains them."""

import pytest
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    NoRegionError,
    ProfileNotFound,
    TokenRetrievalError,
    UnknownServiceError,
)

from signalbox.cli.shared.aws_errors import explained

ROLE = "arn:aws:sts::123456789012:assumed-role/dev/ann"
TABLE = "arn:aws:dynamodb:eu-central-1:123456789012:table/Rendezvous"


def answer(code: str, message: str = "AWS's words") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "GetItem")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (answer("ExpiredToken"), "the AWS credentials have expired: sign in again"),
        (answer("InvalidClientTokenId"), "does not know these credentials (InvalidClientTokenId): they were"),
        (answer("SignatureDoesNotMatch"), "the secret key is wrong, or this machine's clock is\nAWS: AWS's words"),
        (answer("ThrottlingException"), "limits these calls at the moment (ThrottlingException at GetItem)"),
        (
            answer(
                "AccessDeniedException",
                f"User: {ROLE} is not authorized to perform: dynamodb:GetItem on resource: {TABLE} because …",
            ),
            f"{ROLE} may not dynamodb:GetItem on {TABLE}: this permission is missing",
        ),
        (
            answer("AccessDenied", "not authorized to perform: sts:AssumeRole"),
            "your AWS credentials may not sts:AssumeRole: this permission is missing",
        ),
        (
            answer("AccessDenied", "Access Denied"),
            "your AWS credentials may not call GetItem (AccessDenied)\nAWS: Access Denied",
        ),
        (answer("ValidationException"), "AWS: ValidationException at GetItem: AWS's words"),
        (NoRegionError(), "no AWS region is set: set AWS_REGION"),
        (ProfileNotFound(profile="nosuch"), "AWS_PROFILE names no profile: correct it"),
        (TokenRetrievalError(provider="sso", error_msg="gone"), "the AWS session has ended or cannot be read: sign in"),
        (
            EndpointConnectionError(endpoint_url="http://127.0.0.1:4566/"),
            "the local stage does not respond at http://127.0.0.1:4566/: `signalbox local status`",
        ),
        (
            EndpointConnectionError(endpoint_url="https://sqs.eu-central-1.amazonaws.com/"),
            "AWS does not respond at https://sqs.eu-central-1.amazonaws.com/: check the network, AWS_REGION",
        ),
        (UnknownServiceError(service_name="x", known_service_names=[]), "AWS: Unknown service"),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
)
def test_the_cause_and_the_remedy_are_named(error, text):
    assert text in explained(error)
