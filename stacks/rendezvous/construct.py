"""The construct of rendezvous: the broker queue, six functions, the HTTP API of proxies and the client's user."""

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.history.lake import HistoryLake
from stacks.rendezvous.broker import Broker
from stacks.rendezvous.environment import environments
from stacks.settings.choices import OFFER_VISIBILITY_SECONDS
from stacks.settings.config import Config
from stacks.shared.function import Function, Program
from stacks.shared.http_api import CALLS_PER_SECOND, PublicApi, Target
from stacks.shared.queue import DeadLetterQueue, Queue, age_alarm
from stacks.shared.schedules import Task, daily, every
from stacks.state_stack import State

# SQS passes at most this many messages to a function without a batching window.
BATCH = 10
# Malformed offers of any sender are dead letters too, so a single one must not raise an alarm.
DEAD_OFFERS_ALARM = 10
PROXY_TIMEOUT_SECONDS = 15
PAGE_TIMEOUT_SECONDS = 10
SWEEP_TIMEOUT_SECONDS = 60
DESCRIPTIONS = {
    "offer": "Parks, refuses and expires the offers of the broker queue",
    "poll": "Returns a compatible offer to a polling proxy",
    "answer": "Delivers a proxy's answer to its client",
    "client": "Receives offers over HTTP and AMP",
    "page": "Serves the pages of the broker",
    "sweep": "Deletes client queues whose lease has ended",
}


class Rendezvous(Construct):
    """The resources of rendezvous; their permissions are in `stacks/grants/rendezvous.py`."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        state: State,
        lake: HistoryLake | None,
        program: Program,
        config: Config,
    ) -> None:
        super().__init__(scope, name)
        self.broker = _broker(self, state=state, config=config)
        self.age_alarm = age_alarm(
            self, self.broker.queue, oldest=Duration.seconds(config.offer_age_limit_seconds), config=config
        )
        self.functions = self._functions(state, lake, program=program, config=config)
        self.functions["offer"].add_event_source_mapping(
            "Offers",
            event_source_arn=self.broker.queue.queue_arn,
            batch_size=BATCH,
            report_batch_item_failures=True,
            max_concurrency=config.offer_concurrency,
        )
        self.api = self._api(state, config)
        self.client_user = iam.User(self, "ClientUser", user_name=f"{config.stage}-snowflake-client")

    @property
    def alarms(self) -> list[cloudwatch.Alarm]:
        """The alarms on the broker queue and the API."""
        return [self.age_alarm, self.broker.dead_letters.alarm, self.api.alarm]

    @property
    def queues(self) -> tuple[sqs.IQueue, ...]:
        """The queues whose messages are the backlog."""
        return (self.broker.queue,)

    def tasks(self, config: Config) -> dict[str, Task]:
        """Return the scheduled tasks by name."""
        sweep = self.functions["sweep"]
        return {
            "SweepLeases": Task(sweep, "leases", every(minutes=config.sweep_interval_minutes)),
            "SweepStrays": Task(sweep, "strays", daily(hour=3)),
        }

    def outputs(self, state: State, config: Config) -> dict[str, str]:
        """Return the outputs of the stack by name."""
        return {
            "BrokerQueueUrl": self.broker.queue.queue_url,
            "BrokerQueueArn": self.broker.queue.queue_arn,
            "BrokerQueueName": config.broker_queue,
            "DeadLetterQueueUrl": self.broker.dead_letters.queue_url,
            "RendezvousUrl": self.api.stage.url,
            "RendezvousApiId": self.api.api.api_id,
            "RendezvousTable": state.rendezvous_table.table_name,
            "LeaseTable": state.lease_table.table_name,
            "ClientUserName": self.client_user.user_name,
            "ClientSecretArn": state.client_secret.secret_arn,
            "SweepFunctionName": self.functions["sweep"].function_name,
            "ClientQueuePrefix": config.client_queue_prefix,
        }

    def _functions(
        self, state: State, lake: HistoryLake | None, *, program: Program, config: Config
    ) -> dict[str, Function]:
        environment = environments(self.broker, state=state, lake=lake, config=config)
        return {
            name: Function(
                self,
                name,
                capability="rendezvous",
                description=description,
                program=program,
                timeout_seconds=_timeout(name, config),
                environment=environment[name],
                key=state.state_key,
                config=config,
                serves_strangers=name != "sweep",
            )
            for name, description in DESCRIPTIONS.items()
        }

    def _api(self, state: State, config: Config) -> PublicApi:
        proxies = config.proxy_concurrency * CALLS_PER_SECOND
        # An HTTP client waits for its answer, a second or more: as many a second as there may be at once.
        client = Target(self.functions["client"], config.client_concurrency)
        # Upstream ignores the method, so every method is routed.
        routes = {
            "/proxy": Target(self.functions["poll"], proxies),
            "/answer": Target(self.functions["answer"], proxies),
            "/client": client,
            "/amp/{proxy+}": client,
        }
        return PublicApi(
            self,
            "Api",
            api_name=f"{config.stage}-rendezvous",
            routes=routes,
            default=Target(self.functions["page"], config.page_concurrency * CALLS_PER_SECOND),
            key=state.state_key,
            config=config,
        )


def _timeout(name: str, config: Config) -> int:
    return {
        "offer": config.offer_timeout_seconds,
        "poll": PROXY_TIMEOUT_SECONDS,
        "answer": PROXY_TIMEOUT_SECONDS,
        "client": config.client_timeout_seconds,
        "page": PAGE_TIMEOUT_SECONDS,
        "sweep": SWEEP_TIMEOUT_SECONDS,
    }[name]


def _broker(scope: Construct, *, state: State, config: Config) -> Broker:
    dead_letters = DeadLetterQueue(
        scope,
        "DeadOffers",
        key=state.queue_key,
        config=config,
        alarm_at=DEAD_OFFERS_ALARM,
        holds="Offers that could not be handled",
    )
    if config.broker_queue_arn:
        key = _imported_key(scope, config)
        queue = sqs.Queue.from_queue_arn(scope, "Broker", config.broker_queue_arn)
        return Broker(queue=queue, dead_letters=dead_letters, key=key, owned=False)
    owned = Queue(
        scope,
        "Broker",
        queue_name=config.broker_queue_name,
        key=state.queue_key,
        visibility=Duration.seconds(OFFER_VISIBILITY_SECONDS),
        retention=Duration.seconds(config.broker_queue_retention_seconds),
    )
    return Broker(queue=owned, dead_letters=dead_letters, key=state.queue_key, owned=True)


def _imported_key(scope: Construct, config: Config) -> kms.IKey | None:
    if config.broker_queue_key_arn is None:
        return None
    return kms.Key.from_key_arn(scope, "BrokerKey", config.broker_queue_key_arn)
