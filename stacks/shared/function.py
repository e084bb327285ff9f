"""Lambda functions, each with its own role, log group and alarms; arm64 on AWS."""

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from aws_cdk import AssetHashType, Duration, RemovalPolicy, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.history.lake import HistoryLake
from stacks.settings.config import Config
from stacks.shared import packaging
from stacks.shared.alarms import alarm
from stacks.shared.logs import LogGroup
from stacks.state_stack import State

# Lambda allots processor time by memory: the first call takes 0.35 s for its clients at 512 MB, 0.7 s at 256.
MEMORY_MEGABYTES = 512
METRICS_NAMESPACE = "Signalbox"
MAXIMUM_BATCH = 10  # of a FIFO queue, and of other queues without a batching window
PERIOD = Duration.minutes(5)
# The report of a run that Lambda counts as an error. It has the level WARN, so that each function logs it.
# https://docs.aws.amazon.com/lambda/latest/dg/telemetry-schema-reference.html
# https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html
FAILED = " || ".join(f'$.record.status = "{status}"' for status in ("error", "failure", "timeout"))
FAILED_RUN = f'{{ $.type = "platform.report" && ({FAILED}) }}'
# Environment variables of capabilities: a stage without the capability does not set them.
OF_HISTORY = frozenset(
    {
        *("HISTORY_STREAM", "HISTORY_OVERFLOW_URL", "HISTORY_BUCKET"),
        *("KEPT_BUCKET", "HISTORY_DATABASE", "QUERY_RESULTS"),
    }
)
OF_OTHERS = frozenset({"RENDEZVOUS_TABLE", "SPLIT_TABLE"})


@dataclass(frozen=True, slots=True)
class Program:
    """The program of all functions: a layer of packages, the code, and their runtime and architecture."""

    layer: lambda_.ILayerVersion
    code: lambda_.Code
    runtime: lambda_.Runtime
    architecture: lambda_.Architecture


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the constructs of all capabilities in a stack share; without history there is no lake."""

    state: State
    lake: HistoryLake | None
    program: Program
    config: Config


def program(scope: Construct, config: Config) -> Program:
    """Build the program; return placeholders when CDK does not bundle the stack."""
    bundles = Stack.of(scope).bundling_required
    target = packaging.target(local=config.local)
    runtime = lambda_.Runtime(f"python{target.python}", lambda_.RuntimeFamily.PYTHON)
    architecture = _architecture(config)
    layer = lambda_.LayerVersion(
        scope,
        "Packages",
        code=_asset(packaging.packages(config.parts, target) if bundles else None),
        compatible_runtimes=[runtime],
        compatible_architectures=[architecture],
        description=f"The packages of {', '.join(config.parts)}",
        removal_policy=RemovalPolicy.DESTROY,
    )
    code = _asset(packaging.code(config, target) if bundles else None)
    return Program(layer=layer, code=code, runtime=runtime, architecture=architecture)


class Function(lambda_.Function):
    """The handler `lambdas/<capability>/<module>.py`; its role has the permissions of `stacks/grants/` only."""

    def __init__(
        self,
        scope: Construct,
        module: str,
        *,
        capability: str,
        description: str,
        timeout_seconds: int,
        environment: Mapping[str, str],
        around: Surroundings,
        memory_megabytes: int = MEMORY_MEGABYTES,
        recursive_loop: lambda_.RecursiveLoop | None = None,
        serves_strangers: bool = False,
        has_alarms: bool = True,
        counts_failed_runs: bool = True,
    ) -> None:
        name = module.capitalize()
        role = iam.Role(scope, f"{name}Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        config, program = around.config, around.program
        log_group = LogGroup(scope, f"{name}Logs", key=around.state.key, config=config)
        super().__init__(
            scope,
            name,
            handler=f"lambdas.{capability}.{module}.handler",
            description=description,
            code=program.code,
            layers=[program.layer],
            runtime=program.runtime,
            architecture=program.architecture,
            timeout=Duration.seconds(timeout_seconds),
            memory_size=memory_megabytes,
            reserved_concurrent_executions=config.reservations.get(f"{scope.node.id}/{name}"),
            environment={
                **environment,
                "POWERTOOLS_SERVICE_NAME": capability,
                "POWERTOOLS_METRICS_NAMESPACE": METRICS_NAMESPACE,
            },
            role=role,
            log_group=log_group,
            # CDK adds X-Ray's two write actions to the role; they support no resource-level permissions.
            # The number of strangers' runs is up to them, and so is which of them would be traced.
            tracing=lambda_.Tracing.ACTIVE if config.traces and not serves_strangers else lambda_.Tracing.DISABLED,
            # Lambda's own START, END and REPORT of each run are below this level, and a kilobyte.
            logging_format=lambda_.LoggingFormat.JSON,
            system_log_level_v2=lambda_.SystemLogLevel.WARN if serves_strangers else lambda_.SystemLogLevel.INFO,
            application_log_level_v2=lambda_.ApplicationLogLevel.INFO,
            # By default Lambda ends a chain of invocations through SQS after the sixteenth of one function.
            # https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
            recursive_loop=recursive_loop,
        )
        self.own_role = role
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[log_group.log_group_arn]
            )
        )
        if has_alarms:
            function_alarms(self, self, config)
        if config.alarms and counts_failed_runs:
            log_group.add_metric_filter(
                "FailedRuns",
                filter_pattern=logs.FilterPattern.literal(FAILED_RUN),
                metric_namespace=failed_runs(config).namespace,
                metric_name=failed_runs(config).metric_name,
            )

    def read(self, queue: sqs.IQueue, name: str, *, concurrency: int, batch: int = MAXIMUM_BATCH) -> None:
        """Create the event source mapping from a queue."""
        self.add_event_source_mapping(
            name,
            event_source_arn=queue.queue_arn,
            batch_size=batch,
            report_batch_item_failures=True,
            max_concurrency=concurrency,
        )


def _asset(folder: packaging.Folder | None) -> lambda_.Code:
    if folder is None:
        return lambda_.Code.from_asset(str(packaging.ROOT / "lambdas"))
    return lambda_.Code.from_asset(str(folder.path), asset_hash=folder.digest, asset_hash_type=AssetHashType.CUSTOM)


def _architecture(config: Config) -> lambda_.Architecture:
    if config.local and platform.machine() == "x86_64":
        return lambda_.Architecture.X86_64
    return lambda_.Architecture.ARM_64


def function_alarms(scope: Construct, function: lambda_.Function, config: Config) -> None:
    """Create the alarms of a function in a scope."""
    alarm(
        scope,
        "Errors",
        metric=function.metric_errors(period=PERIOD),
        description="The function raised or timed out.",
        config=config,
    )
    alarm(
        scope,
        "Throttles",
        metric=function.metric_throttles(period=PERIOD),
        description="Lambda throttles the function: the account's concurrency is exhausted.",
        config=config,
    )


def failed_runs(config: Config) -> cloudwatch.Metric:
    """Return the metric of the failed runs of all functions of a stage or an app."""
    # A dimension of such a metric can only be a field of the log. Without a failed run it has no value and no price.
    namespace = f"{METRICS_NAMESPACE}/{config.stage}"
    return cloudwatch.Metric(namespace=namespace, metric_name="FailedRuns", period=PERIOD, statistic="Sum")


def failure_alarm(scope: Construct, config: Config) -> None:
    """Create the alarm on the failed runs of all functions of a stage or an app."""
    alarm(
        scope,
        "FailedRuns",
        metric=failed_runs(config),
        description="A function raised or timed out.",
        config=config,
    )


def stream(lake: HistoryLake | None) -> dict[str, str]:
    """Return the variable with the stream of events; none without history."""
    return {} if lake is None else {"HISTORY_STREAM": lake.stream.delivery_stream_name}


def selected(given: Mapping[str, str], names: Iterable[str], config: Config) -> dict[str, str]:
    """Return the variables with these names, without those of capabilities that the stage does not have.

    A variable that is not given is the value of the configuration with its name.
    """
    of_stage = [name for name in names if name in given or name not in OF_HISTORY | OF_OTHERS]
    return {name: given[name] if name in given else str(getattr(config, name.lower())) for name in of_stage}
