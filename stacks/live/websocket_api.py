"""The WebSocket API: frames go into the inbox queue, and a function is called when connections open and close."""

from aws_cdk import Aws
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from aws_cdk.aws_apigatewayv2_integrations import WebSocketAwsIntegration, WebSocketLambdaIntegration
from constructs import Construct

from stacks.live.environment import WEBSOCKET_STAGE
from stacks.shared.arns import arn
from stacks.shared.http_api import limit_routes

# The first character of a message distinguishes frames from signals. Ids are encoded, too: AWS's end with `=`, and no
# page excludes the `+` of base64, which a form turns into a space. SQS refuses the separators of batches.
FRAME = (
    "Action=SendMessage&MessageGroupId=$util.urlEncode($context.connectionId)"
    "&MessageDeduplicationId=$util.urlEncode($context.requestId)"
    '&MessageBody=f$util.urlEncode($input.body).replaceAll("%1[8Ee]", "%0A%0A")'
)


class WebSocketApi(Construct):
    """A WebSocket API for WAMP. Its messages are JSON arrays, so routes cannot be selected by their content."""

    def __init__(self, scope: Construct, name: str, *, api_name: str, frame_limit: int) -> None:
        super().__init__(scope, name)
        self.api = apigatewayv2.WebSocketApi(self, "WebSocket", api_name=api_name)
        self.stage = apigatewayv2.WebSocketStage(
            self,
            "Stage",
            web_socket_api=self.api,
            stage_name=WEBSOCKET_STAGE,
            auto_deploy=True,
            # Anyone can connect and send before a session is joined, and each frame is a message in the inbox.
            throttle=apigatewayv2.ThrottleSettings(rate_limit=frame_limit, burst_limit=frame_limit),
        )
        self.sender: iam.Role | None = None

    def call_on_open_and_close(self, connect: lambda_.IFunction, *, limit: int) -> None:
        """Call a function when a connection opens, `limit` times a second, and, if the client closes it, at its end."""
        functions = f"arn:{Aws.PARTITION}:apigateway:{Aws.REGION}:lambda:path/2015-03-31/functions"
        # One integration and one permission for both routes; CDK's integrations would make one each.
        integration = apigatewayv2.CfnIntegration(
            self,
            "ToConnect",
            api_id=self.api.api_id,
            integration_type="AWS_PROXY",
            integration_uri=f"{functions}/{connect.function_arn}/invocations",
        )
        routes = [
            apigatewayv2.CfnRoute(
                self, name, api_id=self.api.api_id, route_key=key, target=f"integrations/{integration.ref}"
            )
            for name, key in (("Open", "$connect"), ("Close", "$disconnect"))
        ]
        connect.add_permission(
            "FromConnections",
            principal=iam.ServicePrincipal("apigateway.amazonaws.com"),
            source_arn=arn("execute-api", f"{self.api.api_id}/*/$*connect"),
        )
        limit_routes(self.stage, {"$connect": limit}, routes=routes)

    def put_frames(self, inbox: sqs.IQueue) -> None:
        """Send frames to a queue, without a function in between."""
        self.sender = iam.Role(self, "SenderRole", assumed_by=iam.ServicePrincipal("apigateway.amazonaws.com"))
        integration = WebSocketAwsIntegration(
            "ToInbox",
            integration_method="POST",
            integration_uri=(
                f"arn:{Aws.PARTITION}:apigateway:{Aws.REGION}:sqs:path/{Aws.ACCOUNT_ID}/{inbox.queue_name}"
            ),
            credentials_role=self.sender.without_policy_updates(),
            passthrough_behavior=apigatewayv2.PassthroughBehavior.NEVER,
            request_parameters={"integration.request.header.Content-Type": "'application/x-www-form-urlencoded'"},
            request_templates={"$default": FRAME},
            template_selection_expression="\\$default",
        )
        self.api.add_route("$default", integration=integration)

    def call_with_frames(self, receive: lambda_.IFunction) -> None:
        """Call a function with frames: the emulator has no integration with SQS."""
        self.api.add_route("$default", integration=WebSocketLambdaIntegration("ToReceive", receive))
