"""Capabilities as constructs for any CDK app: each with its own data, permissions and defaults, in any stack."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aws_cdk import Names, RemovalPolicy, Token
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.exchange import construct as exchange_part
from stacks.exchange.environment import exchange_queues_arn
from stacks.grants.exchange import grant_exchange
from stacks.grants.live import grant_live, grant_live_routing
from stacks.grants.permissions import allow, allow_key
from stacks.grants.rendezvous import grant_doors, grant_front, grant_rendezvous
from stacks.grants.schedules import grant_schedules
from stacks.grants.splitting import grant_splitting
from stacks.live import construct as live
from stacks.rendezvous import construct as rendezvous
from stacks.rendezvous.doors import Doors
from stacks.rendezvous.front import Front
from stacks.settings.config import Config
from stacks.settings.context import check_config
from stacks.shared.activity_sources import activity_sources
from stacks.shared.function import Function, Program, program
from stacks.shared.queue import require_tls
from stacks.shared.schedules import Schedules, Task
from stacks.splitting import construct as splitting
from stacks.state_stack import State

# A context key, for apps that are deployed to the local stage.
LOCAL = "signalbox:local"
# Of the names of queues: with the endings of exchanges they have at most 80 characters.
PREFIX_CHARACTERS, NAME_CHARACTERS = 20, 30


@dataclass(frozen=True, slots=True)
class Options:
    """What all capabilities take as CDK people expect; the defaults are those of a stage.

    `encryption_key` replaces the key that is made otherwise; its policy must allow CloudWatch Logs to use it.
    """

    encryption_key: kms.IKey | None = None
    removal_policy: RemovalPolicy = RemovalPolicy.RETAIN
    log_retention_days: int = 30
    add_alarms: bool = True
    alarm_topic: sns.ITopic | None = None
    permissions_boundary: iam.IManagedPolicy | None = None


DEFAULTS = Options()


class Capability(Construct):
    """The parts that all capabilities have: configuration, data, program and schedules."""

    def _configure(self, capability: str, options: Options, settings: Mapping[str, object]) -> None:
        """Create the common parts. Raises `InvalidConfig` for settings that a stage would refuse, too."""
        if options.permissions_boundary is not None:
            iam.PermissionsBoundary.of(self).apply(options.permissions_boundary)
        self._config = Config(
            stage=self._own_name(NAME_CHARACTERS),
            local=str(self.node.try_get_context(LOCAL)).lower() == "true",
            capabilities=capability,
            alarms=options.add_alarms,
            every_alarm=True,
            alarm_topic_arn=options.alarm_topic.topic_arn if options.alarm_topic else None,
            log_retention_days=options.log_retention_days,
            retain_state=options.removal_policy != RemovalPolicy.DESTROY,
            **settings,  # type: ignore[arg-type]  # settings of the capability
        )
        # Names of resources of the app are known at its deployment.
        check_config(self._config, {name: one for name, one in settings.items() if not Token.is_unresolved(one)})
        self._state = State(Construct(self, "State"), config=self._config, key=options.encryption_key)
        self._program: Program = program(self, self._config)

    def _own_name(self, length: int) -> str:
        """Return the beginning of the names of a construct's resources, which are the same in each synthesis.

        It has the names of the stack and of the construct: permissions are patterns of names, so that two constructs
        with one beginning would reach each other's resources.
        """
        return Names.unique_resource_name(self, max_length=length).lower()

    def _complete(self, part: exchange_part.Exchange | splitting.Splitting | rendezvous.Rendezvous | Front) -> None:
        """Create the schedules of a capability."""
        self._schedules = Schedules(self, "Schedules", key=self._state.key, config=self._config)
        self._schedule(part.tasks(self._config))
        self.outputs: Mapping[str, str] = {
            **part.outputs(self._state, self._config),
            "Capabilities": self._config.capabilities,
        }
        """The outputs by which the command `signalbox --aws --stage` finds the capability in its stack."""
        require_tls(self)

    def _schedule(self, tasks: Mapping[str, Task]) -> None:
        for name, task in tasks.items():
            self._schedules.invoke(name, task)
        grant_schedules(self._schedules, tasks=tasks, state=self._state)


class Exchange(Capability):
    """Topic exchanges over SQS; exchanges, queues and bindings are declared by command."""

    def __init__(self, scope: Construct, name: str, *, prefix: str | None = None, options: Options = DEFAULTS) -> None:
        super().__init__(scope, name)
        own = f"{self._own_name(PREFIX_CHARACTERS - 1)}-"
        self._configure("exchange", options, {"exchange_prefix": own if prefix is None else prefix})
        part = exchange_part.Exchange(
            self, "Exchange", state=self._state, lake=None, program=self._program, config=self._config
        )
        grant_exchange(part, state=self._state, lake=None, config=self._config)
        self._complete(part)
        self._part = part
        self.control_queue: sqs.IQueue = part.control_queue
        """The queue for commands of administrators."""

    @property
    def prefix(self) -> str:
        """The beginning of the SQS names of exchanges and declared queues."""
        return self._config.exchange_prefix

    def grant_publish(self, grantee: iam.IGrantable) -> None:
        """Let a grantee publish to all exchanges."""
        allow(grantee, ["sqs:SendMessage", "sqs:GetQueueUrl"], [exchange_queues_arn(self._config)])
        allow_key(grantee, self._state.key, service="sqs")

    def grant_administer(self, grantee: iam.IGrantable) -> None:
        """Let a grantee declare and delete exchanges, queues and bindings."""
        allow(grantee, ["sqs:SendMessage", "sqs:GetQueueUrl"], [self.control_queue.queue_arn])
        replies = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueUrl"]
        allow(grantee, replies, [self._part.replies.queue_arn])
        allow_key(grantee, self._state.key, service="sqs")

    def metric_dead_letters(self) -> cloudwatch.Metric:
        """Return the metric of messages and commands that can never be handled."""
        return self._part.dead_letters.metric_approximate_number_of_messages_visible(statistic="Maximum")

    def metric_oldest_retry(self) -> cloudwatch.Metric:
        """Return the metric of the age in seconds of the oldest copy that waits for a retry."""
        return self._part.retries.metric_approximate_age_of_oldest_message(statistic="Maximum")


class Splitting(Capability):
    """Lets developers share the queues of deployed consumers."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        consumers: Sequence[lambda_.IFunction],
        queues: Sequence[sqs.IQueue],
        temporary_prefix: str | None = None,
        options: Options = DEFAULTS,
    ) -> None:
        super().__init__(scope, name)
        own = f"split-{self._own_name(PREFIX_CHARACTERS)}-"
        roles = [one.role.role_name for one in consumers if one.role is not None]
        keys = [one.encryption_master_key.key_arn for one in queues if one.encryption_master_key is not None]
        dead = [one.dead_letter_queue for one in queues if isinstance(one, sqs.Queue)]
        settings = {
            "temporary_queue_prefix": own if temporary_prefix is None else temporary_prefix,
            "splittable_queues": ",".join(queue.queue_name for queue in queues),
            "splittable_dead_letter_queues": ",".join(one.queue.queue_name for one in dead if one is not None),
            "splittable_queue_key_arns": ",".join(dict.fromkeys(keys)),
            "splittable_targets": ",".join(f"lambda/{one.function_name}" for one in consumers),
            "splittable_target_roles": ",".join(roles),
        }
        self._configure("splitting", options, settings)
        part = splitting.Splitting(
            self, "Splitting", state=self._state, lake=None, program=self._program, config=self._config
        )
        grant_splitting(part, state=self._state, lake=None, config=self._config)
        self._complete(part)
        self.functions: Mapping[str, Function] = part.functions
        self.user_policy: iam.IManagedPolicy = part.user_policy
        """The policy for people who start sessions."""


class Rendezvous(Capability):
    """A broker for clients and proxies of Snowflake, or with `broker_url` a front of an existing one."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        bridges: str | None = None,
        broker_queue_name: str | None = None,
        client_queue_prefix: str | None = None,
        doors: str = "url",
        broker_url: str | None = None,
        options: Options = DEFAULTS,
    ) -> None:
        super().__init__(scope, name)
        own = self._own_name(NAME_CHARACTERS)
        settings = {
            "bridge_list_file": None if bridges is None else Path(bridges),
            "broker_queue_name": f"{own}-broker" if broker_queue_name is None else broker_queue_name,
            "client_queue_prefix": f"{own}-client-" if client_queue_prefix is None else client_queue_prefix,
            "rendezvous_doors": doors,
            "broker_url": broker_url,
        }
        self._configure("rendezvous", options, settings)
        state, config, built = self._state, self._config, self._program
        self.url: str | None = None
        """The URL of proxies; None with `broker_url`."""
        self.clients_url: str | None = None
        """The URL of clients over HTTP; None with `broker_url`."""
        part: rendezvous.Rendezvous | Front
        if config.is_front:
            part = Front(self, "Rendezvous", state=state, lake=None, program=built, config=config)
            grant_front(part, state=state, lake=None, config=config)
        else:
            functions = Doors(self, "Doors", state=state, program=built, config=config)
            grant_doors(functions, state=state, config=config)
            part = rendezvous.Rendezvous(
                self, "Rendezvous", state=state, doors=functions, lake=None, program=built, config=config
            )
            grant_rendezvous(part, state=state, lake=None, config=config)
            self.url, self.clients_url = part.urls["RendezvousUrl"], part.urls["RendezvousClientsUrl"]
        self._complete(part)


class Live(Construct):
    """Connections of WAMP to the ordered exchanges of an exchange, with a log of each topic."""

    def __init__(self, scope: Construct, name: str, *, exchange: Exchange) -> None:
        super().__init__(scope, name)
        config = replace(exchange._config, capabilities="live")  # noqa: SLF001 - parts of one capability
        state, routed = exchange._state, exchange._part  # noqa: SLF001 - as above
        own = State(Construct(self, "State"), config=config, key=state.key, parts=("live",))
        state.live_table = own.live_table
        part = live.Live(self, "Live", state=state, lake=None, program=exchange._program, config=config)  # noqa: SLF001 - as above
        part.connect_to(routed, state=state)
        grant_live(part, state=state, lake=None, config=config)
        grant_live_routing(routed, live=part, state=state)
        parts: dict[str, exchange_part.Exchange | live.Live] = {"exchange": routed, "live": part}
        sources = activity_sources(
            {name: one.queues for name, one in parts.items()}, {name: one.functions for name, one in parts.items()}
        )
        part.functions["overview"].add_environment("ACTIVITY_SOURCES", sources)
        exchange._schedule(part.tasks(config))  # noqa: SLF001 - as above
        self.outputs: Mapping[str, str] = {
            **exchange.outputs,
            **part.outputs(state, config),
            "Capabilities": "exchange,live",
        }
        """The outputs of the exchange and of live."""
        require_tls(self)
        self.websocket_url: str = part.websocket.stage.url
        self.page_url: str = f"{part.page.stage.url}live/"
