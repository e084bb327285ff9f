"""Everyone may call a function by its URL if its policy says so."""

import urllib.error
import urllib.request
from urllib.parse import urlsplit

import pytest

from tests.local.emulator.functions import make_function

pytestmark = [pytest.mark.emulator, pytest.mark.release]

ECHO = """
def handler(event, context):
    return {"statusCode": 200, "body": event["requestContext"]["http"]["sourceIp"] + event["rawPath"]}
"""


def test_a_function_url_is_open_only_with_a_permission_for_everyone(running):
    make_function(running.session(), "door", ECHO)
    functions = running.session().client("lambda")
    made = functions.create_function_url_config(FunctionName="door", AuthType="NONE")["FunctionUrl"]
    url_id = (urlsplit(made).hostname or "").partition(".")[0]

    url = f"{running.endpoint_url}/_aws/lambda-url/{url_id}/proxy"

    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(url)
    functions.add_permission(
        FunctionName="door",
        StatementId="everyone",
        Action="lambda:InvokeFunctionUrl",
        Principal="*",
        FunctionUrlAuthType="NONE",
    )

    with urllib.request.urlopen(url) as response:
        assert response.read() == b"127.0.0.1/proxy"
