"""WebSocket connections of API Gateway, which are posted to and closed through its `@connections` API."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.ports import PostResult

if TYPE_CHECKING:
    from mypy_boto3_apigatewaymanagementapi.client import ApiGatewayManagementApiClient

# Without this, botocore would retry a post that timed out, and the client could receive a reply twice.
WITHOUT_RETRIES = Config(retries={"total_max_attempts": 1, "mode": "standard"}, connect_timeout=3, read_timeout=5)
WITH_RETRIES = Config(retries={"total_max_attempts": 4, "mode": "standard"}, connect_timeout=3, read_timeout=5)
POST_RESULTS: Mapping[str, PostResult] = {
    "GoneException": PostResult.GONE,
    "410": PostResult.GONE,
    "LimitExceededException": PostResult.BUSY,
    "429": PostResult.BUSY,
    "PayloadTooLargeException": PostResult.TOO_LARGE,
    "413": PostResult.TOO_LARGE,
}
SERVER_ERROR = 500

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ApiConnections:
    """Implementation of `Connections`."""

    without_retries: "ApiGatewayManagementApiClient"
    with_retries: "ApiGatewayManagementApiClient"

    def post(self, connection: ConnectionId, text: str, *, is_repeatable: bool) -> PostResult:
        """Post a message. A repeatable one is retried, so the client may receive it twice."""
        client = self.with_retries if is_repeatable else self.without_retries
        try:
            client.post_to_connection(ConnectionId=connection, Data=text.encode(errors="surrogatepass"))
        except ClientError as error:
            return _result(error)
        except BotoCoreError as error:
            logger.warning("a message may or may not have been posted: %s", type(error).__name__)
            return PostResult.UNKNOWN
        return PostResult.POSTED

    def close(self, connection: ConnectionId) -> None:
        """Close a connection. Idempotent."""
        try:
            self.with_retries.delete_connection(ConnectionId=connection)
        except ClientError as error:
            if _result(error) is not PostResult.GONE:
                raise


def _result(error: ClientError) -> PostResult:
    """Map an error response to a result. Raises errors that do not concern the connection, such as AccessDenied."""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    known = POST_RESULTS.get(error.response["Error"]["Code"]) or POST_RESULTS.get(str(status))
    if known is None and status < SERVER_ERROR:
        raise error
    return known or PostResult.UNKNOWN
