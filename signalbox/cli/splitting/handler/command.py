"""`signalbox split run --handler` and `--endpoint`: a session whose messages a Lambda handler gets."""

import os
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from signalbox.cli.shared.stage import StageOptions, say
from signalbox.cli.splitting.handler.loop import HandledQueue, HandlerLoop, Invoker
from signalbox.cli.splitting.handler.options import HandlerOptions
from signalbox.cli.splitting.handler.process import Handler, HandlerProcess, interpreter
from signalbox.cli.splitting.sessions import held
from signalbox.clients.splitting.handler.batches import BatchQueue
from signalbox.clients.splitting.handler.deployed import DeployedFunction
from signalbox.clients.splitting.handler.runtime_interface import RuntimeInterface
from signalbox.clients.splitting.handler.settings import FunctionSettings, MappingSettings
from signalbox.clients.splitting.handler.template import TemplateFunction
from signalbox.clients.splitting.heartbeats import HeartbeatThread
from signalbox.clients.splitting.sessions import SessionRequest
from signalbox.errors import RejectedError
from signalbox.queues import FIFO_SUFFIX
from signalbox.splitting.control.protocol import SessionQueue, SessionStatus
from signalbox.splitting.model.target import Target, TargetKind

if TYPE_CHECKING:
    import boto3


def run_handler(request: SessionRequest, options: HandlerOptions, place: StageOptions, *, timeout: timedelta) -> None:
    """Invoke a handler with the messages of a session until a signal arrives or the session ends."""
    deployment = place.deployment()
    environment = deployment.program_environment(os.environ)
    consumer = LocalFunction.of(request.target, options, deployment.session(), environment)
    with held(request, place, timeout=timeout) as (client, state):
        with HeartbeatThread(client, say).running() as heartbeat:
            consumer.follow(state, until=heartbeat.ended)
        heartbeat.check()


@dataclass(frozen=True, slots=True)
class LocalFunction:
    """A function on the user's machine in place of a deployed consumer."""

    target: Target
    options: HandlerOptions
    template: TemplateFunction | None
    session: "boto3.Session"
    environment: Mapping[str, str]
    """The environment of the user's programs, in which AWS's SDKs reach the stage."""

    @classmethod
    def of(
        cls, target: str, options: HandlerOptions, session: "boto3.Session", environment: Mapping[str, str]
    ) -> "LocalFunction":
        """Return the function; its options are checked before a session starts. Raises `RejectedError`."""
        function = cls(Target.parse(target), options, options.template_function(), session, environment)
        if options.handler is not None:
            function._handler({}, FunctionSettings(name="", arn=""), options.handler).check()
        if options.endpoint is not None:
            RuntimeInterface(options.endpoint, None, say).check()
        return function

    def follow(self, state: SessionStatus, *, until: threading.Event) -> None:
        """Handle the messages of a session's queues until the event is set."""
        sqs = self.session.client("sqs")
        arns, visibilities = {}, {}
        for queue in state.queues:
            found = sqs.get_queue_attributes(QueueUrl=queue.url, AttributeNames=["QueueArn", "VisibilityTimeout"])
            # The session's queues are in the region and account of the originals.
            prefix = found["Attributes"]["QueueArn"].rpartition(":")[0]
            arns[queue.queue_id] = f"{prefix}:{queue.original}"
            visibilities[queue.queue_id] = int(found["Attributes"]["VisibilityTimeout"])
        if not arns:
            raise RejectedError("the session has no queue, so a handler would get no message")
        function = self._settings(next(iter(arns.values())))
        queues = [
            HandledQueue(
                queue.queue_id,
                arns[queue.queue_id],
                BatchQueue(
                    sqs, queue.url, self._mapping(queue, arns[queue.queue_id]), visibilities[queue.queue_id], say
                ),
            )
            for queue in state.queues
        ]
        with self._invoker(state, function, until) as invoker:
            say("Ctrl-C ends it")
            HandlerLoop(queues, invoker, as_json=self.options.as_json).follow(until=until)

    def _settings(self, queue_arn: str) -> FunctionSettings:
        _, partition, _, region, account, *_ = queue_arn.split(":")
        name = self.target.name.rpartition("/")[2].partition("@")[0]
        settings = FunctionSettings(name, f"arn:{partition}:lambda:{region}:{account}:function:{name}")
        if (deployed := self._deployed()) is not None:
            settings = deployed.settings(settings)
        if self.template is not None:
            settings = self.template.applied_to(settings)
            known = settings.environment.keys()
            if missing := [one for one in self.template.unresolved if one not in known]:
                say(f"references of the template that cannot be resolved here: {', '.join(missing)}")
        settings = self.options.overrides.of_function(settings)
        settings.check()
        limit = "no time-out" if self.options.no_timeout else f"time-out {settings.timeout.total_seconds():g} s"
        say(f"function {settings.name}: {limit}, {settings.memory_mb} MB, {len(settings.environment)} variables")
        return settings

    def _mapping(self, queue: SessionQueue, arn: str) -> MappingSettings:
        settings = None if self.template is None else self.template.mapping(queue.original)
        if settings is None and (deployed := self._deployed()) is not None:
            settings = deployed.mapping(arn)
        settings = self.options.overrides.of_mapping(settings or MappingSettings())
        settings.check(is_fifo=queue.original.endswith(FIFO_SUFFIX))
        failures = "by message" if settings.reports_failures else "of whole batches"
        say(
            f"{queue.queue_id}: batches of {settings.batch_size} within {settings.window.total_seconds():g} s, "
            f"failures {failures}, {len(settings.filters.patterns)} filters of the mapping"
        )
        return settings

    def _deployed(self) -> DeployedFunction | None:
        if self.target.kind is not TargetKind.LAMBDA:
            return None
        return DeployedFunction(self.session.client("lambda"), self.target.name, say)

    @contextmanager
    def _invoker(self, state: SessionStatus, function: FunctionSettings, until: threading.Event) -> Iterator[Invoker]:
        if self.options.endpoint is not None:
            for name, value in state.environment.items():
                say(f"the endpoint's function reads its queue's name there: {name}={value}")
            yield RuntimeInterface(self.options.endpoint, self.options.timeout(function.timeout), say)
            return
        handler = self._handler(state.environment, function, str(self.options.handler))
        with HandlerProcess(handler, until).running() as process:
            yield process

    def _handler(self, variables: Mapping[str, str], function: FunctionSettings, name: str) -> Handler:
        environment = {
            **self.environment,
            **_lambda_variables(function, name),
            **({} if self.session.region_name is None else _region_variables(self.session.region_name)),
            **function.environment,
            **variables,
        }
        return Handler(
            name=name,
            folder=(self.options.code or Path()).resolve(),
            python=interpreter(self.options.python, os.environ),
            environment=environment,
            function_arn=function.arn,
            timeout=function.timeout,
            has_timeout=not self.options.no_timeout,
            prints_to_errors=self.options.as_json,
        )


def _lambda_variables(function: FunctionSettings, handler: str) -> Mapping[str, str]:
    """Return the variables that Lambda sets, without those that make libraries expect its file system or X-Ray daemon.

    https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime
    """
    stream = f"{time.strftime('%Y/%m/%d', time.gmtime())}/[{function.version}]{uuid.uuid4().hex}"
    return {
        "_HANDLER": handler,
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_VERSION": function.version,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
        "AWS_LAMBDA_LOG_GROUP_NAME": function.log_group or f"/aws/lambda/{function.name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": stream,
    }


def _region_variables(region: str) -> Mapping[str, str]:
    return {"AWS_REGION": region, "AWS_DEFAULT_REGION": region}
