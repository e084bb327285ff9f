"""The WebSocket API: frames go into a queue in the order of their connection; a function sees its beginning and end."""

from aws_cdk import Aws
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from aws_cdk.aws_apigatewayv2_integrations import WebSocketAwsIntegration, WebSocketLambdaIntegration
from constructs import Construct

from stacks.live.environment import WEBSOCKET_STAGE
from stacks.shared.http_api import BURST_LIMIT, RATE_LIMIT

# By its first character a frame is told from what else is heard of a connection.
FRAME = (
    "Action=SendMessage&MessageGroupId=$context.connectionId&MessageDeduplicationId=$context.requestId"
    "&MessageBody=f$util.urlEncode($input.body)"
)


class WebSocketApi(Construct):
    """Takes connections of WAMP, whose messages are all alike here: arrays, which no route can be chosen by."""

    def __init__(self, scope: Construct, name: str, *, api_name: str) -> None:
        super().__init__(scope, name)
        self.api = apigatewayv2.WebSocketApi(self, "WebSocket", api_name=api_name)
        self.stage = apigatewayv2.WebSocketStage(
            self,
            "Stage",
            web_socket_api=self.api,
            stage_name=WEBSOCKET_STAGE,
            auto_deploy=True,
            throttle=apigatewayv2.ThrottleSettings(rate_limit=RATE_LIMIT, burst_limit=BURST_LIMIT),
            detailed_metrics_enabled=True,
        )
        self.sender: iam.Role | None = None

    def tell_ends(self, connect: lambda_.IFunction) -> None:
        """Have a function called when a connection begins and, if the client tells, when it ends."""
        for route in ("$connect", "$disconnect"):
            integration = WebSocketLambdaIntegration(f"To{connect.node.id}At{route[1:].capitalize()}", connect)
            self.api.add_route(route, integration=integration)

    def put_frames(self, inbox: sqs.IQueue) -> None:
        """Put what clients say into a queue, without a function in between."""
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

    def hand_frames(self, receive: lambda_.IFunction) -> None:
        """Call a function with what clients say: the emulator can do nothing else with it."""
        self.api.add_route("$default", integration=WebSocketLambdaIntegration("ToReceive", receive))
