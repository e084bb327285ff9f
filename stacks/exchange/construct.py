"""The construct of the exchange: its control, reply, retry and dead-letter queues, and its functions."""

from functools import partial

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.exchange.environment import environment
from stacks.history.lake import HistoryLake
from stacks.settings.choices import VISIBILITY_PER_TIMEOUT
from stacks.settings.config import Config
from stacks.shared.alarms import alarm
from stacks.shared.command_queue import TIMEOUT_SECONDS, VISIBILITY, add_command_mapping, command_queue, reply_queue
from stacks.shared.function import METRICS_NAMESPACE, Function, Surroundings, stream
from stacks.shared.part import Part
from stacks.shared.queue import DeadLetterQueue, Queue, age_alarm
from stacks.shared.schedules import Task, daily, every
from stacks.state_stack import State

# The age of a copy that raises an alarm, in attempts to deliver it: its queue cannot be reached.
ALARMING_ATTEMPTS = 10
# Routing is matching, and processor time grows with memory, which also holds the compiled bindings.
MEMORY_MEGABYTES = 1024
MEASURED_EVERY = Duration.minutes(5)
DESCRIPTIONS = {
    "route": "Puts the messages of exchanges into the queues that are bound to them",
    "control": "Declares exchanges, queues and bindings, deletes those that are due, and connects their queues",
}


class ExchangeResources(Part):
    """The topic exchange. Exchanges and queues are created by command; grants are in `stacks/grants/exchange.py`."""

    def __init__(self, scope: Construct, name: str, *, around: Surroundings) -> None:
        super().__init__(scope, name)
        state, config = around.state, around.config
        self.dead_letters = DeadLetterQueue(
            self,
            "DeadLetters",
            key=state.key,
            config=config,
            holds="Messages, copies or commands that can never be handled",
        )
        self.control_queue = command_queue(self, queue_name=config.exchange_control_queue, key=state.key)
        self.replies = reply_queue(self, queue_name=config.exchange_reply_queue, key=state.key)
        retries = partial(
            Queue,
            self,
            key=state.key,
            visibility=Duration.seconds(config.route_retry_seconds),
            retention=Duration.seconds(config.exchange_retention_seconds),
        )
        self.retries = retries("Retries", queue_name=config.exchange_retry_queue)
        ordered = f"{config.exchange_retry_queue}.fifo"
        self.ordered_retries = retries("OrderedRetries", queue_name=ordered, ordered=True)
        self.queues = (self.control_queue, self.retries, self.ordered_retries)
        resources = self._resources(state, around.lake)
        make = partial(Function, self, capability="exchange", around=around, memory_megabytes=MEMORY_MEGABYTES)
        route = make(
            "route",
            description=DESCRIPTIONS["route"],
            timeout_seconds=config.route_timeout_seconds,
            environment=environment("route", resources, config),
            # A consumer may publish to the exchange again, step after step: whether that loop is allowed is the
            # consumer's setting. The router itself sends nothing to the queue of an exchange.
            recursive_loop=lambda_.RecursiveLoop.ALLOW,
        )
        control = make(
            "control",
            description=DESCRIPTIONS["control"],
            timeout_seconds=TIMEOUT_SECONDS,
            environment=environment("control", {**resources, "ROUTE_FUNCTION_ARN": route.function_arn}, config),
        )
        # The router trusts only this role to publish on behalf of users.
        route.add_environment("EXCHANGE_CONTROL_ROLE_ID", control.own_role.role_id)
        # `control` takes no command from the router, which sends what any publisher wrote.
        control.add_environment("ROUTE_ROLE_ID", route.own_role.role_id)
        self.functions = {"route": route, "control": control}
        add_command_mapping(control, self.control_queue)
        # `control` creates the event source mappings of exchanges and retry queues with the exchanges.
        self._alarms(config)

    def tasks(self, config: Config) -> dict[str, Task]:
        """Return the scheduled tasks by name."""
        control = self.functions["control"]
        return {
            "MaintainQueues": Task(control, "maintain", every(minutes=1)),
            "SweepExchanges": Task(control, "strays", daily(hour=5)),
            "MeasureQueues": Task(control, "measure", every(minutes=1 if config.local else 5)),
        }

    def outputs(self, state: State, config: Config) -> dict[str, str]:
        """Return the outputs of the stack by name."""
        return {
            "ExchangeControlQueueUrl": self.control_queue.queue_url,
            "ExchangeReplyQueueUrl": self.replies.queue_url,
            "ExchangePrefix": config.exchange_prefix,
            "ExchangeDeadLetterQueueUrl": self.dead_letters.queue_url,
            "ExchangeTable": state.exchange_table.table_name,
            "RouteFunctionName": self.functions["route"].function_name,
            "RouteFunctionArn": self.functions["route"].function_arn,
            "ExchangeControlFunctionName": self.functions["control"].function_name,
        }

    def _resources(self, state: State, lake: HistoryLake | None) -> dict[str, str]:
        return {
            "EXCHANGE_TABLE": state.exchange_table.table_name,
            **stream(lake),
            **({"KEPT_BUCKET": lake.bucket.bucket_name} if lake else {}),
            "QUEUE_KEY_ARN": state.key.key_arn,
            "EXCHANGE_CONTROL_QUEUE_URL": self.control_queue.queue_url,
            "EXCHANGE_DEAD_LETTER_QUEUE_URL": self.dead_letters.queue_url,
            "EXCHANGE_RETRY_QUEUE_URL": self.retries.queue_url,
            "EXCHANGE_ORDERED_RETRY_QUEUE_URL": self.ordered_retries.queue_url,
        }

    def _alarms(self, config: Config) -> None:
        """Create the alarms on the age of waiting messages."""
        attempts = Duration.seconds(config.route_retry_seconds * ALARMING_ATTEMPTS)
        watched = ((self.control_queue, VISIBILITY), (self.retries, attempts), (self.ordered_retries, attempts))
        for queue, oldest in watched:
            age_alarm(queue, queue, oldest=oldest, config=config)
        self._backlog_alarm(config)

    def _backlog_alarm(self, config: Config) -> None:
        """Create the alarm on queues that are created at run time: `control` measures the oldest message of all."""
        metric = cloudwatch.Metric(
            namespace=METRICS_NAMESPACE,
            metric_name="OldestMessageAge",
            dimensions_map={"service": "exchange", "stage": config.stage},
            statistic="Maximum",
            period=MEASURED_EVERY,
        )
        # A message whose function failed once is received again after the visibility timeout.
        oldest = VISIBILITY_PER_TIMEOUT * config.route_timeout_seconds + MEASURED_EVERY.to_seconds()
        alarm(
            self,
            "BacklogAlarm",
            metric=metric,
            threshold=oldest,
            periods=2,
            description="Messages wait in the queue of an exchange or user: no function reads it, or too slowly.",
            config=config,
        )
