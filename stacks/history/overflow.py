"""The overflow queue for history events that Firehose refuses, and the function `drain` that resends them."""

from collections.abc import Iterable

from aws_cdk import Duration
from constructs import Construct

from stacks.history.lake import HistoryLake
from stacks.settings.choices import VISIBILITY_PER_TIMEOUT
from stacks.shared.function import Function, Surroundings
from stacks.shared.queue import Queue, age_alarm

TIMEOUT_SECONDS = 50
VISIBILITY = Duration.seconds(VISIBILITY_PER_TIMEOUT * TIMEOUT_SECONDS)
# SQS's maximum: the tolerated outage of Firehose.
RETENTION = Duration.days(14)
MAX_AGE = Duration.hours(1)
CONCURRENCY = 10


class HistoryOverflow(Construct):
    """The overflow queue and its function; the permissions are in `stacks/grants/history.py`."""

    def __init__(self, scope: Construct, name: str, *, lake: HistoryLake, around: Surroundings) -> None:
        super().__init__(scope, name)
        config, self.lake = around.config, lake
        self.queue = Queue(
            self,
            "Queue",
            queue_name=config.history_overflow_queue,
            key=around.state.key,
            visibility=VISIBILITY,
            retention=RETENTION,
        )
        self.drain = self._drain(lake, around)
        age_alarm(self, self.queue, oldest=MAX_AGE, config=config)

    def connect_to(self, writers: Iterable[Function]) -> None:
        """Give functions that write history the URL of the queue."""
        for function in writers:
            function.add_environment("HISTORY_OVERFLOW_URL", self.queue.queue_url)

    def _drain(self, lake: HistoryLake, around: Surroundings) -> Function:
        function = Function(
            self,
            "drain",
            capability="history",
            description="Sends history events from the overflow queue to Firehose",
            timeout_seconds=TIMEOUT_SECONDS,
            environment={"HISTORY_STREAM": lake.stream.delivery_stream_name},
            around=around,
        )
        function.read(self.queue, "Overflow", concurrency=CONCURRENCY)
        return function
