"""Lambda functions for tests of the emulator: small programs with a role that may do anything."""

import io
import json
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3

TRUSTED = {"Statement": [{"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "*"}]}
ANYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


def make_function(session: boto3.Session, name: str, program: str, **environment: str) -> str:
    """Create a function whose handler is `program`'s `handler`; return its ARN."""
    iam = session.client("iam")
    role = iam.create_role(RoleName=f"{name}-role", AssumeRolePolicyDocument=json.dumps(TRUSTED))
    iam.put_role_policy(RoleName=f"{name}-role", PolicyName="anything", PolicyDocument=json.dumps(ANYTHING))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as code:
        code.writestr(f"{name}.py", program)
    return session.client("lambda").create_function(
        FunctionName=name,
        Runtime=f"python{sys.version_info.major}.{sys.version_info.minor}",
        Role=role["Role"]["Arn"],
        Handler=f"{name}.handler",
        Code={"ZipFile": archive.getvalue()},
        Environment={"Variables": environment},
    )["FunctionArn"]


def make_websocket(session: boto3.Session, name: str, function: str) -> str:
    """Create a WebSocket API that calls a function, by its ARN, at `$connect`; return its URL."""
    api = session.client("apigatewayv2")
    made = api.create_api(Name=name, ProtocolType="WEBSOCKET", RouteSelectionExpression="\\$default")["ApiId"]
    uri = f"arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/{function}/invocations"
    integration = api.create_integration(ApiId=made, IntegrationType="AWS_PROXY", IntegrationUri=uri)["IntegrationId"]
    api.create_route(ApiId=made, RouteKey="$connect", Target=f"integrations/{integration}")
    api.create_stage(ApiId=made, StageName="live", AutoDeploy=True)
    return f"{api.meta.endpoint_url}/_aws/execute-api/{made}/live"


def invoke(session: boto3.Session, name: str) -> dict[str, Any]:
    """Invoke a function; return its `payload`, and whether it `failed`."""
    response = session.client("lambda").invoke(FunctionName=name)
    return {"failed": "FunctionError" in response, "payload": json.load(response["Payload"])}


def invoke_at_once(session: boto3.Session, name: str, count: int) -> list[dict[str, Any]]:
    """Invoke a function `count` times at the same moment, which takes as many instances."""
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(lambda _: invoke(session, name), range(count)))
