"""Capabilities as constructs for any CDK app: each with its own data, permissions and defaults, in any stack."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, NotRequired, TypedDict, Unpack, get_args

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.capability import Capability, Properties, keys_of, maximum
from stacks.exchange import construct as exchange_part
from stacks.exchange.declared import DeclaredExchange, DeclaredUsers
from stacks.grants.exchange import grant_exchange
from stacks.grants.live import grant_live, grant_live_routing
from stacks.grants.permissions import allow, allow_key
from stacks.grants.rendezvous import grant_doors, grant_front, grant_rendezvous
from stacks.grants.splitting import grant_splitting
from stacks.live import construct as live
from stacks.properties import (
    require_bridges,
    require_choice,
    require_exchange,
    require_issuers,
    require_pattern,
    require_resource,
    require_resources,
    require_truth,
    require_user,
)
from stacks.rendezvous import construct as rendezvous
from stacks.rendezvous.doors import Doors
from stacks.rendezvous.front import Front
from stacks.shared.activity_sources import activity_sources
from stacks.shared.arns import queue_arn
from stacks.shared.function import Function, Surroundings, program
from stacks.shared.part import Part, composed
from stacks.shared.queue import require_tls
from stacks.splitting import construct as splitting
from stacks.splitting.sources import queues_of
from stacks.state_stack import State


class Exchange(Capability[exchange_part.ExchangeResources]):
    """A topic exchange over SQS with its bindings; commands declare more exchanges and queues.

    With `ordered`, it keeps the order of each routing key.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        ordered: bool = False,
        exchange_name: str = "xbus",
        prefix: str | None = None,
        **properties: Unpack[Properties],
    ) -> None:
        require_truth("ordered", ordered)
        super().__init__(
            scope,
            name,
            capability="exchange",
            settings=lambda own: {"exchange_prefix": f"{own}-" if prefix is None else prefix},
            **properties,
        )
        require_exchange(exchange_name, prefix=self.prefix, ordered=ordered)
        part = self._compose(exchange_part.ExchangeResources, grant_exchange)
        self.exchange_name = f"{exchange_name}.fifo" if ordered else exchange_name
        """The name of the exchange in commands."""
        self.queue: sqs.IQueue = sqs.Queue.from_queue_attributes(
            self,
            "Queue",
            queue_arn=queue_arn(f"{self.prefix}{self.exchange_name}"),
            key_arn=self._state.key.key_arn,
            fifo=ordered,
        )
        """The queue that publishers send messages to, with the routing key as the attribute `topic`."""
        self.control_queue: sqs.IQueue = part.control_queue
        """The queue for commands of administrators."""
        self._declared = DeclaredExchange(self, part=part, name=self.exchange_name, config=self._config)

    @property
    def prefix(self) -> str:
        """The beginning of the SQS names of exchanges and declared queues."""
        return self._config.exchange_prefix

    def bind(self, queue: sqs.IQueue, pattern: str) -> None:
        """Put copies of the messages whose routing key matches a pattern into a queue of the app.

        The key of an imported queue must be imported with it. A queue of a construct of Signalbox is refused: its
        function would execute what any publisher sends.
        """
        require_resource("queue", queue)
        if any(isinstance(one, Capability) for one in queue.node.scopes):
            raise ValueError(f"queue: expected a queue of the app, not {queue.node.path!r}, which is Signalbox's own")
        require_pattern(pattern)
        self._declared.bind(queue, pattern)

    def grant_publish(self, grantee: iam.IGrantable) -> None:
        """Let a grantee publish to the exchange."""
        allow(grantee, ["sqs:SendMessage", "sqs:GetQueueUrl"], [self.queue.queue_arn])
        allow_key(grantee, self._state.key, service="sqs")

    def grant_administer(self, grantee: iam.IGrantable) -> None:
        """Let a grantee declare and delete exchanges, queues and bindings."""
        allow(grantee, ["sqs:SendMessage", "sqs:GetQueueUrl"], [self.control_queue.queue_arn])
        replies = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueUrl"]
        allow(grantee, replies, [self._part.replies.queue_arn])
        allow_key(grantee, self._state.key, service="sqs")

    def metric_dead_letters(self) -> cloudwatch.Metric:
        """Return the metric of messages and commands that can never be handled."""
        return maximum(self._part.dead_letters)

    def metric_oldest_retry(self) -> cloudwatch.Metric:
        """Return the metric of the age in seconds of the oldest copy that waits for a retry."""
        return self._part.retries.metric_approximate_age_of_oldest_message(statistic="Maximum")


class Splitting(Capability[splitting.SplittingResources]):
    """Lets developers share the queues of deployed consumers.

    Without `queues`, the event sources of the consumers in the app are shared.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        consumers: Sequence[lambda_.IFunction],
        queues: Sequence[sqs.IQueue] | None = None,
        temporary_prefix: str | None = None,
        **properties: Unpack[Properties],
    ) -> None:
        require_resources("consumers", consumers)
        shared = queues_of(consumers) if queues is None else queues
        require_resources("queues", shared)
        roles = [one.role.role_name for one in consumers if one.role is not None]
        dead = [one.dead_letter_queue.queue for one in shared if isinstance(one, sqs.Queue) and one.dead_letter_queue]
        super().__init__(
            scope,
            name,
            capability="splitting",
            settings=lambda own: {
                "temporary_queue_prefix": f"split-{own}-" if temporary_prefix is None else temporary_prefix,
                "splittable_queues": ",".join(queue.queue_name for queue in shared),
                "splittable_dead_letter_queues": ",".join(queue.queue_name for queue in dead) or None,
                "splittable_queue_key_arns": ",".join(dict.fromkeys(keys_of(shared))) or None,
                "splittable_targets": ",".join(f"lambda/{one.function_name}" for one in consumers),
                "splittable_target_roles": ",".join(roles),
            },
            **properties,
        )
        part = self._compose(splitting.SplittingResources, grant_splitting)
        self.functions: Mapping[str, Function] = part.functions
        self.user_policy: iam.IManagedPolicy = part.user_policy
        """The policy for people who start sessions."""

    def metric_dead_letters(self) -> cloudwatch.Metric:
        """Return the metric of messages and commands that can never be handled."""
        return maximum(self._part.dead_letters)


class Rendezvous(Capability[rendezvous.RendezvousResources | Front]):
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
        **properties: Unpack[Properties],
    ) -> None:
        super().__init__(
            scope,
            name,
            capability="rendezvous",
            settings=lambda own: {
                "bridge_list_file": None if bridges is None else Path(bridges),
                "broker_queue_name": f"{own}-broker" if broker_queue_name is None else broker_queue_name,
                "client_queue_prefix": f"{own}-client-" if client_queue_prefix is None else client_queue_prefix,
                "rendezvous_doors": doors,
                "broker_url": broker_url,
            },
            **properties,
        )
        if bridges is not None:
            require_bridges(Path(bridges))
        self.url: str | None = None
        """The URL of proxies; None with `broker_url`."""
        self.clients_url: str | None = None
        """The URL of clients over HTTP; None with `broker_url`."""
        if self._config.is_front:
            self._compose(Front, grant_front)
        else:
            doors_ = Doors(self, "Doors", around=self._around)
            grant_doors(doors_, state=self._state, config=self._config)
            part = self._compose(rendezvous.RendezvousResources, grant_rendezvous, doors=doors_)
            self.url, self.clients_url = part.urls["RendezvousUrl"], part.urls["RendezvousClientsUrl"]

    def metric_dead_letters(self) -> cloudwatch.Metric:
        """Return the metric of offers that can never be handled."""
        return maximum(self._part.broker.dead_letters)


class Issuer(TypedDict):
    """An identity provider whose users may join; `docs/live.md` describes the claims."""

    url: str
    audience: str
    label: NotRequired[str]
    name_claim: NotRequired[str]
    role_claim: NotRequired[str]
    groups_claim: NotRequired[str]
    skew_seconds: NotRequired[int]
    client_id: NotRequired[str]
    origins: NotRequired[list[str]]


Role = Literal["admin", "feeder", "source", "subscriber"]


class Live(Construct):
    """Connections of WAMP to an ordered exchange, with a log of each topic.

    `anonymous` is the name of an added user, as which connections without a secret join.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        exchange: Exchange,
        issuers: Sequence[Issuer] = (),
        anonymous: str | None = None,
    ) -> None:
        super().__init__(scope, name)
        if not isinstance(exchange, Exchange):
            raise ValueError(f"exchange: expected an Exchange, not {exchange!r}")  # noqa: TRY004 - as for others
        exchange._declared.require_live_possible()  # noqa: SLF001 - the parts of one capability
        require_issuers(issuers, required=Issuer.__required_keys__, known=Issuer.__annotations__)
        if anonymous is not None:
            require_user("anonymous", anonymous)
        part, state = exchange._part, exchange._state  # noqa: SLF001 - as above
        self._exchange, self._users = exchange._declared, DeclaredUsers(self, part=part)  # noqa: SLF001 - as above
        config = replace(exchange._config, capabilities="live")  # noqa: SLF001 - as above
        own = State(Construct(self, "State"), config=config, parts=("live",), exchange=state)
        around = Surroundings(own, None, program(self, config), config)
        self._part = composed(self, "Live", live.LiveResources, grant_live, around=around)
        self._part.connect_to(part, state=own)
        grant_live_routing(part, live=self._part, state=own)
        parts: dict[str, Part] = {"exchange": part, "live": self._part}
        sources = activity_sources(
            {name: one.queues for name, one in parts.items()}, {name: one.functions for name, one in parts.items()}
        )
        self._part.functions["overview"].add_environment("ACTIVITY_SOURCES", sources)
        exchange._schedule(self._part.tasks(config))  # noqa: SLF001 - as above
        self._exchange.make_live({"issuers": list(issuers), "anonymous": anonymous or ""})
        self.outputs: Mapping[str, str] = {
            **exchange.outputs,
            **self._part.outputs(own, config),
            "Capabilities": "exchange,live",
        }
        """The outputs of the exchange and of live."""
        require_tls(self)
        self.websocket_url: str = self._part.websocket.stage.url
        self.page_url: str = f"{self._part.page.stage.url}live/"

    def add_user(self, name: str, role: Role = "subscriber") -> None:
        """Add a user who joins realms with a secret, which `signalbox user secret` makes, or as `anonymous`."""
        require_user("name", name)
        require_choice("role", role, get_args(Role))
        self._users.add(name, role)
        self._exchange.follow(self._users)

    def metric_dead_letters(self) -> cloudwatch.Metric:
        """Return the metric of frames and calls that can never be handled."""
        return maximum(self._part.dead_letters)
