"""A WebSocket is refused with the status that the function at `$connect` returns."""

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.local.emulator.functions import make_function

pytestmark = pytest.mark.emulator

RETURN_REQUESTED_STATUS = (
    "def handler(event, context):\n"
    "    return {'statusCode': int(event['queryStringParameters']['status']), 'body': 'why'}\n"
)


def test_a_websocket_is_refused_with_the_status_of_its_function(running):
    """As "Set up a $connect route that requires a WebSocket subprotocol" in API Gateway's developer guide shows."""
    url = _make_websocket(running.session(), "answer", RETURN_REQUESTED_STATUS).replace("http:", "ws:")

    with connect(f"{url}?status=200"):
        pass
    with pytest.raises(InvalidStatus) as refused, connect(f"{url}?status=429"):
        pass

    assert (refused.value.response.status_code, refused.value.response.body) == (429, b"")


def _make_websocket(session, name, program):
    """Create a WebSocket API with a function at `$connect`; return its URL."""
    function, api = make_function(session, name, program), session.client("apigatewayv2")
    made = api.create_api(Name=name, ProtocolType="WEBSOCKET", RouteSelectionExpression="\\$default")["ApiId"]
    uri = f"arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/{function}/invocations"
    integration = api.create_integration(ApiId=made, IntegrationType="AWS_PROXY", IntegrationUri=uri)["IntegrationId"]
    api.create_route(ApiId=made, RouteKey="$connect", Target=f"integrations/{integration}")
    api.create_stage(ApiId=made, StageName="live", AutoDeploy=True)
    return f"{api.meta.endpoint_url}/_aws/execute-api/{made}/live"
