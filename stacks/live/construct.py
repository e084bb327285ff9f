"""Live: the WebSocket API, the queues that keep each connection's order, and the functions behind them."""

from functools import partial

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_kms as kms
from constructs import Construct

from stacks.exchange.construct import Exchange
from stacks.live.environment import Resources, environment
from stacks.live.websocket_api import WebSocketApi
from stacks.settings.choices import VISIBILITY_PER_TIMEOUT
from stacks.settings.config import Config
from stacks.shared import function
from stacks.shared.function import Function, Program
from stacks.shared.http_api import PublicApi
from stacks.shared.queue import DeadLetterQueue, Queue, Redrive, age_alarm
from stacks.state_stack import StateStack

# What SQS hands over of an ordered queue at most, and of others without waiting for more.
BATCH = 10
# A frame that cannot be handled stands in the way of all that its client says after it.
RECEIVES = 5
# What an outbox has is received again each time that there was no time for all of a long past.
OUTBOX_RECEIVES = 100
# API Gateway ends every connection after two hours.
RETENTION = Duration.hours(3)
# Who is a minute behind is cut off, and catches up when it comes back.
OLDEST = Duration.seconds(60)
PAGE_TIMEOUT_SECONDS = 10
# Processor time comes with memory, and these do nothing but read, match and write JSON.
MEMORY_MEGABYTES = {"session": 1024, "deliver": 1024}
DESCRIPTIONS = {
    "connect": "Begins the sessions of connections, and hears when a client closed one",
    "session": "Does what clients ask for, one after the other",
    "deliver": "Posts replies and events to connections in their order, to those who may have them",
    "page": "Serves the page, and tells whether live is well",
}
RECEIVE = "Puts what clients say into the inbox, where no integration with the queue does"


class Live(Construct):
    """Brings what is published to connections; permissions are in `live_grants.py`."""

    def __init__(
        self, scope: Construct, name: str, *, state: StateStack, stream_name: str, program: Program, config: Config
    ) -> None:
        super().__init__(scope, name)
        dead = partial(DeadLetterQueue, self, key=state.queue_key, config=config)
        self.dead_letters = dead("DeadLetters", holds="Timers of connections that nobody could look at")
        self.ordered_dead_letters = dead(
            "OrderedDeadLetters", holds="What clients said, or was to be posted to them, and nobody could", ordered=True
        )
        queue = partial(self._queue, key=state.queue_key, config=config)
        self.inbox = queue("Inbox", config.live_inbox, dead_letters=self.ordered_dead_letters)
        self.outbox = queue(
            "Outbox", config.live_outbox, dead_letters=self.ordered_dead_letters, receives=OUTBOX_RECEIVES
        )
        self.timers = queue("Timers", config.live_timers, dead_letters=self.dead_letters)
        self.websocket = WebSocketApi(self, "Connections", api_name=f"{config.stage}-live")
        self.functions = self._functions(state, stream_name, program=program, config=config)
        self._connect(config)
        self.page = PublicApi(
            self,
            "Api",
            api_name=f"{config.stage}-live-page",
            routes={},
            default=self.functions["page"],
            key=state.state_key,
            config=config,
        )
        self.alarms = self._alarms(config)

    def introduce(self, exchange: Exchange, *, state: StateStack) -> None:
        """Tell the exchange how to reach connections, and whom to believe that it publishes for somebody."""
        route, control = exchange.functions["route"], exchange.functions["control"]
        route.add_environment("LIVE_SESSION_ROLE_ID", self.functions["session"].own_role.role_id)
        route.add_environment("LIVE_OUTBOX_URL", self.outbox.queue_url)
        control.add_environment("LIVE_INBOX_URL", self.inbox.queue_url)
        for told in (route, control):
            told.add_environment("LIVE_TABLE", state.live_table.table_name)

    def _queue(
        self,
        name: str,
        queue_name: str,
        *,
        dead_letters: DeadLetterQueue,
        key: kms.IKey,
        config: Config,
        receives: int = RECEIVES,
    ) -> Queue:
        return Queue(
            self,
            name,
            queue_name=queue_name,
            key=key,
            visibility=Duration.seconds(VISIBILITY_PER_TIMEOUT * config.live_timeout_seconds),
            retention=RETENTION,
            redrive=Redrive(queue=dead_letters, maximum_receives=receives),
            ordered=dead_letters.fifo,
        )

    def _functions(
        self, state: StateStack, stream_name: str, *, program: Program, config: Config
    ) -> dict[str, Function]:
        resources = self._resources(state, stream_name)
        descriptions = DESCRIPTIONS | ({"receive": RECEIVE} if config.local else {})
        return {
            name: Function(
                self,
                name,
                capability="live",
                description=description,
                program=program,
                timeout_seconds=PAGE_TIMEOUT_SECONDS if name == "page" else config.live_timeout_seconds,
                environment=environment(name, resources, config),
                key=state.state_key,
                config=config,
                memory_megabytes=MEMORY_MEGABYTES.get(name, function.MEMORY_MEGABYTES),
            )
            for name, description in descriptions.items()
        }

    def _resources(self, state: StateStack, stream_name: str) -> Resources:
        return Resources(
            table_name=state.live_table.table_name,
            exchange_table_name=state.exchange_table.table_name,
            rendezvous_table_name=state.rendezvous_table.table_name,
            split_table_name=state.split_table.table_name,
            history_bucket_name=state.history_bucket.bucket_name,
            stream_name=stream_name,
            pepper_arn=state.live_pepper.secret_arn,
            inbox_url=self.inbox.queue_url,
            outbox_url=self.outbox.queue_url,
            timers_url=self.timers.queue_url,
            dead_letter_queue_url=self.dead_letters.queue_url,
            ordered_dead_letter_queue_url=self.ordered_dead_letters.queue_url,
            api_id=self.websocket.api.api_id,
        )

    def _connect(self, config: Config) -> None:
        """Have the functions called with what is for them."""
        self.websocket.tell_ends(self.functions["connect"])
        if config.local:
            self.websocket.hand_frames(self.functions["receive"])
        else:
            self.websocket.put_frames(self.inbox)
        for name, queue in (("session", self.inbox), ("session", self.timers), ("deliver", self.outbox)):
            self.functions[name].add_event_source_mapping(
                queue.node.id,
                event_source_arn=queue.queue_arn,
                batch_size=BATCH,
                report_batch_item_failures=True,
                max_concurrency=config.live_concurrency,
            )

    def _alarms(self, config: Config) -> list[cloudwatch.Alarm]:
        """Watch what nobody could handle, and how long clients wait."""
        # What is tried again waits for six time-outs.
        patience = Duration.seconds(OLDEST.to_seconds() + VISIBILITY_PER_TIMEOUT * config.live_timeout_seconds)
        ages = [
            age_alarm(queue, queue, oldest=patience, config=config) for queue in (self.inbox, self.outbox, self.timers)
        ]
        return [*ages, self.dead_letters.alarm, self.ordered_dead_letters.alarm, self.page.alarm]
