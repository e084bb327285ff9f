"""A public HTTP API: routes by path, each with its own throttle, and access logs without addresses."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import jsii
from aws_cdk import Duration
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_apigatewayv2 as apigatewayv2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct, IConstruct

from stacks.settings.config import Config
from stacks.shared.alarms import alarm
from stacks.shared.logs import LogGroup

# An execution of a function that does not wait takes about 0.1 s.
CALLS_PER_SECOND = 10
# No address and no user agent: the logs must not identify clients.
ACCESS_LOG = (
    '{"requestId":"$context.requestId","requestTime":"$context.requestTime","routeKey":"$context.routeKey",'
    '"status":"$context.status","responseLength":"$context.responseLength",'
    '"responseLatency":"$context.responseLatency","integrationLatency":"$context.integrationLatency",'
    '"integrationError":"$context.integrationErrorMessage"}'
)


@dataclass(frozen=True, slots=True)
class RouteTarget:
    """The function of a route, and the number of requests a second, also at once, that the route accepts."""

    function: lambda_.IFunction
    rate: int


class PublicApi(Construct):
    """Routes each path to its function in payload format 2.0, and all other paths to `default`.

    API Gateway refuses further requests with status 429; without these limits the functions' reserved concurrency
    would turn them into errors 5xx, and each would cost an invocation's price.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        api_name: str,
        routes: Mapping[str, RouteTarget],
        default: RouteTarget,
        key: kms.IKey,
        config: Config,
    ) -> None:
        super().__init__(scope, name)
        self.api = apigatewayv2.HttpApi(
            self,
            "Http",
            api_name=api_name,
            create_default_stage=False,
            default_integration=_integration(default.function),
        )
        # CloudWatch Logs admits all groups with this prefix when the account's resource policy nears its 5,120
        # characters; without it, an account with many such logs cannot create the stage.
        # https://docs.aws.amazon.com/step-functions/latest/dg/bp-cwl.html
        group = f"/aws/vendedlogs/{api_name}"
        logs = LogGroup(self, "AccessLogs", key=key, config=config, log_group_name=group)
        self.stage = self._stage(logs, rate=default.rate)
        integrations = {target.function.node.id: _integration(target.function) for target in routes.values()}
        made = [
            route
            for path, target in routes.items()
            for route in self.api.add_routes(path=path, integration=integrations[target.function.node.id])
        ]
        limit_routes(self.stage, {f"ANY {path}": target.rate for path, target in routes.items()}, routes=made)
        alarm(
            self,
            "ServerErrors",
            metric=self.stage.metric_server_error(period=Duration.minutes(5), statistic="Sum"),
            description="The API answers with 5xx.",
            config=config,
        )

    def _stage(self, access_logs: LogGroup, *, rate: int) -> apigatewayv2.HttpStage:
        return apigatewayv2.HttpStage(
            self,
            "Stage",
            http_api=self.api,
            stage_name="$default",
            auto_deploy=True,
            throttle=apigatewayv2.ThrottleSettings(rate_limit=rate, burst_limit=rate),
            access_log_settings=_AccessLog(access_logs),
        )


def limit_routes(stage: apigatewayv2.IStage, rates: Mapping[str, int], *, routes: Iterable[IConstruct]) -> None:
    """Limit the requests a second of some routes, by route key; the others have the limit of the stage."""
    made = stage.node.default_child
    if not isinstance(made, apigatewayv2.CfnStage):
        raise TypeError(f"expected a stage of an API, not {made!r}")
    if rates:
        # These settings replace those of the stage as a whole: what they omit has API Gateway's own default.
        made.route_settings = {
            key: {"ThrottlingRateLimit": rate, "ThrottlingBurstLimit": rate} for key, rate in rates.items()
        }
    for route in routes:
        # A stage with settings for a route that does not exist yet is refused: «Unable to find Route by key».
        stage.node.add_dependency(route)


def _integration(function: lambda_.IFunction) -> HttpLambdaIntegration:
    return HttpLambdaIntegration(
        f"To{function.node.id}",
        function,
        payload_format_version=apigatewayv2.PayloadFormatVersion.VERSION_2_0,
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
