"""Live: the WebSocket API, the FIFO queues with a message group for each connection, and the functions."""

from functools import partial

from aws_cdk import Duration
from constructs import Construct

from stacks.exchange.construct import ExchangeResources
from stacks.history.lake import HistoryLake
from stacks.live.environment import environment
from stacks.live.websocket_api import WebSocketApi
from stacks.settings.choices import VISIBILITY_PER_TIMEOUT
from stacks.settings.config import Config
from stacks.shared import function
from stacks.shared.function import Function, Surroundings, stream
from stacks.shared.http_api import CALLS_PER_SECOND, PublicApi, RouteTarget
from stacks.shared.part import Part
from stacks.shared.queue import DeadLetterQueue, Queue, age_alarm
from stacks.shared.schedules import Task, every
from stacks.state_stack import State

# API Gateway ends every connection after two hours.
RETENTION = Duration.hours(3)
# A client that is a minute behind is disconnected, and catches up when it reconnects.
OLDEST = Duration.seconds(60)
PAGE_TIMEOUT_SECONDS = 10
# Processor time is proportional to memory, and these functions are bound by processing JSON.
MEMORY_MEGABYTES = {"session": 1024, "deliver": 1024}
DESCRIPTIONS = {
    "connect": "Opens the sessions of new connections, and signals the end of closed ones",
    "session": "Processes the frames and signals of connections in order",
    "overview": "Answers calls about topics, the stage and the pictures of reports",
    "deliver": "Posts replies and permitted events to connections in order",
    "page": "Serves the live page, and the health check",
}
RECEIVE = "Puts frames into the inbox, where API Gateway has no integration with SQS"


class LiveResources(Part):
    """Delivers published events to WebSocket connections; permissions are in `stacks/grants/live.py`."""

    def __init__(self, scope: Construct, name: str, *, around: Surroundings) -> None:
        super().__init__(scope, name)
        state, config = around.state, around.config
        self.dead_letters = DeadLetterQueue(
            self,
            "OrderedDeadLetters",
            key=state.key,
            config=config,
            holds="Frames, calls, timers or outbox items that cannot be read",
            ordered=True,
        )
        visibility = Duration.seconds(VISIBILITY_PER_TIMEOUT * config.live_timeout_seconds)
        queue = partial(Queue, self, key=state.key, visibility=visibility, retention=RETENTION)
        self.inbox = queue("Inbox", queue_name=config.live_inbox, ordered=True)
        self.outbox = queue("Outbox", queue_name=config.live_outbox, ordered=True)
        self.timers = queue("Timers", queue_name=config.live_timers)
        self.overview_calls = queue("OverviewCalls", queue_name=config.live_overview_calls, ordered=True)
        self.websocket = WebSocketApi(
            self, "Connections", api_name=f"{config.stage}-live", frame_limit=config.live_frame_limit
        )
        self.queues = (self.inbox, self.outbox, self.timers, self.overview_calls)
        self.functions = self._functions(around)
        self._connect(config)
        self.page = PublicApi(
            self,
            "Api",
            api_name=f"{config.stage}-live-page",
            routes={},
            default=RouteTarget(self.functions["page"], config.page_concurrency * CALLS_PER_SECOND),
            key=state.key,
            config=config,
        )
        self._alarms(config)

    def connect_to(self, exchange: ExchangeResources, *, state: State) -> None:
        """Give the exchange the queues of connections, and the role that may publish in the name of users."""
        route, control = exchange.functions["route"], exchange.functions["control"]
        route.add_environment("LIVE_SESSION_ROLE_ID", self.functions["session"].own_role.role_id)
        route.add_environment("LIVE_OUTBOX_URL", self.outbox.queue_url)
        control.add_environment("LIVE_INBOX_URL", self.inbox.queue_url)
        for function_ in (route, control):
            function_.add_environment("LIVE_TABLE", state.live_table.table_name)

    def tasks(self, _config: Config) -> dict[str, Task]:
        """Return the scheduled tasks by name."""
        return {"SweepSessions": Task(self.functions["session"], "sweep", every(minutes=5))}

    def outputs(self, state: State, _config: Config) -> dict[str, str]:
        """Return the outputs of the stack by name."""
        return {
            "LiveWebSocketUrl": self.websocket.stage.url,
            "LiveWebSocketApiId": self.websocket.api.api_id,
            "LivePageUrl": f"{self.page.stage.url}live/",
            "LivePageApiId": self.page.api.api_id,
            "LiveTable": state.live_table.table_name,
            "LiveInboxUrl": self.inbox.queue_url,
            "LiveOutboxUrl": self.outbox.queue_url,
            "LiveOrderedDeadLetterQueueUrl": self.dead_letters.queue_url,
            "SessionFunctionName": self.functions["session"].function_name,
            "DeliverFunctionName": self.functions["deliver"].function_name,
        }

    def _functions(self, around: Surroundings) -> dict[str, Function]:
        config = around.config
        resources = self._resources(around.state) | _of_others(around.state, around.lake, config)
        descriptions = DESCRIPTIONS | ({"receive": RECEIVE} if config.local else {})
        return {
            name: Function(
                self,
                name,
                capability="live",
                description=description,
                timeout_seconds=PAGE_TIMEOUT_SECONDS if name == "page" else config.live_timeout_seconds,
                environment=environment(name, resources, api_id=self.websocket.api.api_id, config=config),
                around=around,
                memory_megabytes=MEMORY_MEGABYTES.get(name, function.MEMORY_MEGABYTES),
                # Those of the others show in the ages of FIFO queues, or to visitors of the live page.
                counts_failed_runs=name == "connect",
            )
            for name, description in descriptions.items()
        }

    def _resources(self, state: State) -> dict[str, str]:
        return {
            "LIVE_TABLE": state.live_table.table_name,
            "EXCHANGE_TABLE": state.exchange_table.table_name,
            "LIVE_INBOX_URL": self.inbox.queue_url,
            "LIVE_OUTBOX_URL": self.outbox.queue_url,
            "LIVE_TIMERS_URL": self.timers.queue_url,
            "LIVE_OVERVIEW_URL": self.overview_calls.queue_url,
            "LIVE_ORDERED_DEAD_LETTER_QUEUE_URL": self.dead_letters.queue_url,
        }

    def _connect(self, config: Config) -> None:
        """Connect the functions to the WebSocket API and the queues."""
        self.websocket.call_on_open_and_close(
            self.functions["connect"], limit=config.live_connect_concurrency * CALLS_PER_SECOND
        )
        if config.local:
            self.websocket.call_with_frames(self.functions["receive"])
        else:
            self.websocket.put_frames(self.inbox)
        sources = {
            "session": (self.inbox, self.timers),
            "overview": (self.overview_calls,),
            "deliver": (self.outbox,),
        }
        for name, queue in ((name, queue) for name, queues in sources.items() for queue in queues):
            self.functions[name].read(queue, queue.node.id, concurrency=config.live_concurrency)

    def _alarms(self, config: Config) -> None:
        """Create the alarms on the age of messages."""
        # A message that is retried waits for the visibility timeout.
        patience = Duration.seconds(OLDEST.to_seconds() + VISIBILITY_PER_TIMEOUT * config.live_timeout_seconds)
        for queue in self.queues:
            age_alarm(queue, queue, oldest=patience, config=config)


def _of_others(state: State, lake: HistoryLake | None, config: Config) -> dict[str, str]:
    """Return the variables of the overview's sources, which are of other capabilities."""
    return {
        **({"RENDEZVOUS_TABLE": state.rendezvous_table.table_name} if config.has("rendezvous") else {}),
        **({"SPLIT_TABLE": state.split_table.table_name} if config.has("splitting") else {}),
        **({"HISTORY_BUCKET": lake.bucket.bucket_name} if lake else {}),
        **stream(lake),
    }
