"""A public HTTP API: routes by path, throttling, and access logs without addresses."""

from collections.abc import Mapping

import jsii
from aws_cdk import Duration
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from stacks.settings.config import Config
from stacks.shared.alarms import alarm
from stacks.shared.logs import LogGroup

# Half of the account's request quota a second: other APIs of the account keep working in a flood.
RATE_LIMIT = 5000
BURST_LIMIT = 2500
# No address and no user agent: the logs must not identify clients.
ACCESS_LOG = (
    '{"requestId":"$context.requestId","requestTime":"$context.requestTime","routeKey":"$context.routeKey",'
    '"status":"$context.status","responseLength":"$context.responseLength",'
    '"responseLatency":"$context.responseLatency","integrationLatency":"$context.integrationLatency",'
    '"integrationError":"$context.integrationErrorMessage"}'
)


class PublicApi(Construct):
    """Routes each path to its function in payload format 2.0, and all other paths to `default`."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        api_name: str,
        routes: Mapping[str, lambda_.IFunction],
        default: lambda_.IFunction,
        key: kms.IKey,
        config: Config,
    ) -> None:
        super().__init__(scope, name)
        self.api = apigatewayv2.HttpApi(
            self,
            "Http",
            api_name=api_name,
            create_default_stage=False,
            default_integration=_integration(default),
        )
        integrations = {function.node.id: _integration(function) for function in routes.values()}
        for path, function in routes.items():
            self.api.add_routes(path=path, integration=integrations[function.node.id])
        self.stage = self._stage(LogGroup(self, "AccessLogs", key=key, config=config))
        self.alarm = alarm(
            self,
            "ServerErrors",
            metric=self.stage.metric_server_error(period=Duration.minutes(5), statistic="Sum"),
            description="The API answers with 5xx.",
            config=config,
        )

    def _stage(self, access_logs: LogGroup) -> apigatewayv2.HttpStage:
        return apigatewayv2.HttpStage(
            self,
            "Stage",
            http_api=self.api,
            stage_name="$default",
            auto_deploy=True,
            throttle=apigatewayv2.ThrottleSettings(rate_limit=RATE_LIMIT, burst_limit=BURST_LIMIT),
            detailed_metrics_enabled=True,
            access_log_settings=_AccessLog(access_logs),
        )


def _integration(function: lambda_.IFunction) -> HttpLambdaIntegration:
    return HttpLambdaIntegration(
        f"To{function.node.id}", function, payload_format_version=apigatewayv2.PayloadFormatVersion.VERSION_2_0
    )


@jsii.implements(apigatewayv2.IAccessLogSettings)
class _AccessLog:
    """The access log destination, as the stage construct expects it."""

    def __init__(self, log_group: LogGroup) -> None:
        self._log_group = log_group

    @property
    def destination(self) -> apigatewayv2.IAccessLogDestination:
        return apigatewayv2.LogGroupLogDestination(self._log_group)

    @property
    def format(self) -> apigateway.AccessLogFormat:
        return apigateway.AccessLogFormat.custom(ACCESS_LOG)
