"""The shared parts of all capabilities' constructs: properties, configuration, data, program and schedules."""

import re
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Generic, TypedDict, TypeVar, Unpack

from aws_cdk import Names, RemovalPolicy, Token
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.grants.schedules import grant_schedules
from stacks.properties import require_choice, require_known, require_resource, require_truth
from stacks.settings.config import Config
from stacks.settings.context import InvalidConfig, check_config
from stacks.shared.function import Surroundings, failure_alarm, program
from stacks.shared.logs import RETENTION
from stacks.shared.part import Part, composed
from stacks.shared.queue import require_tls
from stacks.shared.schedules import Schedules, Task
from stacks.state_stack import State

# A context key, for apps that are deployed to the local stage.
LOCAL = "signalbox:local"
# Of the beginning of all names, and of those that exchanges and users lengthen: queues have at most 80 characters.
NAME_CHARACTERS, PREFIX_CHARACTERS = 30, 19

# The properties that have another name than their settings.
PROPERTIES = {
    "exchange_prefix": "prefix",
    "temporary_queue_prefix": "temporary_prefix",
    "rendezvous_doors": "doors",
    "bridge_list_file": "bridges",
}

Made = TypeVar("Made", bound=Part)
AnyPart = TypeVar("AnyPart", bound=Part)


class Properties(TypedDict, total=False):
    """The properties of all capabilities but `Live`, in CDK's usual types. The defaults are those of a stage.

    `encryption_key` replaces the key that is made otherwise; its policy must allow CloudWatch Logs to use it.
    """

    encryption_key: kms.IKey
    removal_policy: RemovalPolicy
    log_retention: logs.RetentionDays
    add_alarms: bool
    alarm_topic: sns.ITopic
    permissions_boundary: iam.IManagedPolicy


DEFAULTS: Properties = {
    "removal_policy": RemovalPolicy.RETAIN,
    "log_retention": logs.RetentionDays.ONE_MONTH,
    "add_alarms": True,
}


class Capability(Construct, Generic[Made]):
    """A capability with its own data, permissions and schedules.

    `settings` gets the beginning of the names of its queues. Raises `InvalidConfig` for settings that a stage would
    refuse, too.
    """

    _part: Made

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        capability: str,
        settings: Callable[[str], Mapping[str, object]],
        **properties: Unpack[Properties],
    ) -> None:
        super().__init__(scope, name)
        own = list(signature(type(self).__init__).parameters)
        require_known(type(self).__name__, properties, known=[*own, *Properties.__annotations__])
        _check(properties)
        boundary, key = properties.get("permissions_boundary"), properties.get("encryption_key")
        if boundary is not None:
            iam.PermissionsBoundary.of(self).apply(boundary)
        given = settings(self._own_name(PREFIX_CHARACTERS))
        self._config = Config(
            stage=self._own_name(NAME_CHARACTERS),
            local=str(self.node.try_get_context(LOCAL)).lower() == "true",
            capabilities=capability,
            **_given(properties),  # type: ignore[arg-type]  # settings of all capabilities
            **given,  # type: ignore[arg-type]  # settings of the capability
        )
        # Names of resources of the app are known at its deployment.
        known = {name: one for name, one in given.items() if not (isinstance(one, str) and Token.is_unresolved(one))}
        try:
            check_config(self._config, known)
        except InvalidConfig as error:
            raise InvalidConfig(tuple(map(_with_properties, error.problems))) from None
        self._state = State(Construct(self, "State"), config=self._config, key=key)
        self._around = Surroundings(self._state, None, program(self, self._config), self._config)

    def _own_name(self, length: int) -> str:
        """Return the beginning of the names of a construct's resources, which are the same in each synthesis.

        It has the names of the stack and of the construct: permissions are patterns of names, so that two constructs
        with one beginning would reach each other's resources.
        """
        return Names.unique_resource_name(self, max_length=length).lower()

    def _compose(self, make: Callable[..., AnyPart], grant: Callable[..., None], **own: object) -> AnyPart:
        """Create the capability of a stage with its permissions and schedules."""
        name = self._config.capabilities.capitalize()
        part = composed(self, name, make, grant, around=self._around, **own)
        self._part = part  # type: ignore[assignment]  # the part of this capability
        self._schedules = Schedules(self, "Schedules", key=self._state.key, config=self._config)
        self._schedule(part.tasks(self._config))
        self.outputs: Mapping[str, str] = {
            **part.outputs(self._state, self._config),
            "Capabilities": self._config.capabilities,
        }
        """The outputs by which the command `signalbox --aws --stage` finds the capability in its stack."""
        failure_alarm(self, self._config)
        require_tls(self)
        return part

    def _schedule(self, tasks: Mapping[str, Task]) -> None:
        for name, task in tasks.items():
            self._schedules.invoke(name, task)
        grant_schedules(self._schedules, tasks=tasks, state=self._state)


def _check(properties: Properties) -> None:
    given = DEFAULTS | properties
    require_choice("removal_policy", given["removal_policy"], (RemovalPolicy.RETAIN, RemovalPolicy.DESTROY))
    require_choice("log_retention", given["log_retention"], RETENTION.values())
    require_truth("add_alarms", given["add_alarms"])
    for name in ("encryption_key", "alarm_topic", "permissions_boundary"):
        if given.get(name) is not None:
            require_resource(name, given.get(name))


def _with_properties(problem: str) -> str:
    """Return a problem of settings with the names of the properties that are these settings."""
    return re.sub("|".join(PROPERTIES), lambda found: PROPERTIES[found[0]], problem)


def _given(properties: Properties) -> dict[str, object]:
    given = DEFAULTS | properties
    days = {retention: number for number, retention in RETENTION.items()}
    topic = given.get("alarm_topic")
    return {
        "alarms": given["add_alarms"],
        "alarm_topic_arn": topic.topic_arn if topic else None,
        "log_retention_days": days[given["log_retention"]],
        "retain_state": given["removal_policy"] != RemovalPolicy.DESTROY,
    }


def maximum(queue: sqs.IQueue) -> cloudwatch.Metric:
    """Return the metric of the number of messages that wait in a queue."""
    return queue.metric_approximate_number_of_messages_visible(statistic="Maximum")


def keys_of(queues: Sequence[sqs.IQueue]) -> list[str]:
    """Return the ARNs of the keys of queues, as far as CDK knows them."""
    return [key.key_arn for key in (queue.encryption_master_key for queue in queues) if key is not None]
