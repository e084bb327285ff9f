"""Connections over API Gateway's `@connections`, with stubbed responses."""

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.stub import Stubber

from signalbox.aws.live.connections import WITH_RETRIES, WITHOUT_RETRIES, ApiConnections
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.ports import PostResult

CONNECTION = ConnectionId("c=")


@pytest.fixture
def connections(aws: None) -> ApiConnections:
    url = "https://api.execute-api.us-east-1.amazonaws.com/live"
    return ApiConnections(
        *(
            boto3.client("apigatewaymanagementapi", endpoint_url=url, config=config)
            for config in (WITHOUT_RETRIES, WITH_RETRIES)
        )
    )


@pytest.mark.parametrize(
    ("code", "status", "result"),
    [
        ("GoneException", 410, PostResult.GONE),
        ("410", 410, PostResult.GONE),
        ("LimitExceededException", 429, PostResult.BUSY),
        ("TooManyRequestsException", 429, PostResult.BUSY),
        ("PayloadTooLargeException", 413, PostResult.TOO_LARGE),
        ("InternalServerError", 500, PostResult.UNKNOWN),
    ],
)
def test_each_error_response_has_its_post_result(connections, code, status, result) -> None:
    with Stubber(connections.without_retries) as stubber:
        stubber.add_client_error("post_to_connection", code, http_status_code=status)

        assert connections.post(CONNECTION, "[]", is_repeatable=False) is result


def test_repeatable_posts_use_the_client_with_retries(connections) -> None:
    with Stubber(connections.with_retries) as stubber:
        stubber.add_response("post_to_connection", {}, {"ConnectionId": CONNECTION, "Data": '["ä"]'.encode()})

        assert connections.post(CONNECTION, '["ä"]', is_repeatable=True) is PostResult.POSTED


def test_without_a_response_the_post_result_is_unknown(connections, monkeypatch) -> None:
    def unanswered(**_parameters: Any) -> None:
        raise EndpointConnectionError(endpoint_url="https://api")

    monkeypatch.setattr(connections.without_retries, "post_to_connection", unanswered)

    assert connections.post(CONNECTION, "[]", is_repeatable=False) is PostResult.UNKNOWN


def test_an_access_denied_error_is_raised(connections) -> None:
    with Stubber(connections.without_retries) as stubber:
        stubber.add_client_error("post_to_connection", "ForbiddenException", http_status_code=403)

        with pytest.raises(ClientError, match="ForbiddenException"):
            connections.post(CONNECTION, "[]", is_repeatable=False)


def test_close_is_idempotent(connections) -> None:
    with Stubber(connections.with_retries) as stubber:
        stubber.add_response("delete_connection", {}, {"ConnectionId": CONNECTION})
        stubber.add_client_error("delete_connection", "GoneException", http_status_code=410)

        for _ in range(2):
            connections.close(CONNECTION)


def test_a_failed_close_is_raised(connections) -> None:
    with Stubber(connections.with_retries) as stubber:
        stubber.add_client_error("delete_connection", "LimitExceededException", http_status_code=429)

        with pytest.raises(ClientError):
            connections.close(CONNECTION)
