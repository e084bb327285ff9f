"""The stack of a stage: composes the capabilities, grants permissions and declares outputs."""

import json
from collections.abc import Iterator, Sequence

from aws_cdk import Aws, CfnOutput, Duration, Stack, TimeZone
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from stacks.exchange.construct import Exchange
from stacks.grants.exchange import grant_exchange
from stacks.grants.history import grant_delivery, grant_job, grant_overflow, grant_reader
from stacks.grants.live import grant_live, grant_live_routing
from stacks.grants.rendezvous import grant_rendezvous
from stacks.grants.schedules import grant_schedules
from stacks.grants.splitting import grant_splitting
from stacks.history.jobs import HistoryJobs, schedule
from stacks.history.lake import TABLE, HistoryLake
from stacks.history.overflow import HistoryOverflow
from stacks.live.construct import Live
from stacks.rendezvous.construct import Rendezvous
from stacks.settings.config import Config
from stacks.settings.record import recorded
from stacks.shared.activity_sources import activity_sources
from stacks.shared.dashboard import Monitoring
from stacks.shared.function import Function, program
from stacks.shared.schedules import Schedules
from stacks.splitting.construct import Splitting
from stacks.state_stack import REPORT_PREFIX, SPLIT_REPORT_PREFIX, StateStack

# Functions that write no history.
READERS = ("page", "receive")


class SignalboxStack(Stack):
    """All resources without state; safe to delete."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        state: StateStack,
        config: Config,
        bridges: Sequence[str],
        **options: object,
    ) -> None:
        super().__init__(scope, name, **options)  # type: ignore[arg-type]  # passed through to the stack
        key = state.state_key
        self.lake = HistoryLake(self, "HistoryLake", state=state, config=config)
        built, stream = program(self, config), self.lake.stream.delivery_stream_name
        self.rendezvous = Rendezvous(self, "Rendezvous", state=state, stream_name=stream, program=built, config=config)
        self.splitting = Splitting(self, "Splitting", state=state, lake=self.lake, program=built, config=config)
        self.exchange = Exchange(self, "Exchange", state=state, stream_name=stream, program=built, config=config)
        self.live = Live(self, "Live", state=state, stream_name=stream, program=built, config=config)
        self.live.connect_to(self.exchange, state=state)
        self.overflow = HistoryOverflow(
            self, "HistoryOverflow", lake=self.lake, state=state, program=built, config=config
        )
        self.overflow.connect_to(self._writers)
        sources = activity_sources(
            self.rendezvous, self.splitting, exchange=self.exchange, live=self.live, overflow=self.overflow
        )
        self.live.functions["overview"].add_environment("ACTIVITY_SOURCES", sources)
        self.jobs = HistoryJobs(self, "HistoryJobs", state=state, lake=self.lake, key=key, config=config).jobs
        self.schedules = Schedules(self, "Schedules", key=state.queue_key, config=config)
        self._schedule(config)
        self.monitoring = Monitoring(
            self,
            "Monitoring",
            rendezvous=self.rendezvous,
            splitting=self.splitting,
            exchange=self.exchange,
            live=self.live,
            lake=self.lake,
            overflow=self.overflow,
            jobs=self.jobs,
            schedules=self.schedules,
            config=config,
        )
        grant_rendezvous(self.rendezvous, state=state, lake=self.lake, config=config)
        grant_splitting(self.splitting, state=state, lake=self.lake, config=config)
        grant_exchange(self.exchange, state=state, lake=self.lake, config=config)
        grant_live(self.live, state=state, lake=self.lake, config=config)
        grant_live_routing(self.exchange, live=self.live, state=state)
        grant_delivery(self.lake, state=state)
        grant_reader(self.lake)
        grant_overflow(self.overflow, writers=self._writers, state=state)
        for job in self.jobs.values():
            grant_job(job, lake=self.lake, state=state, config=config)
        grant_schedules(self.schedules, calls=self._calls, jobs=self.jobs.values(), state=state)
        self._name_results(state, config, bridges)

    def _schedule(self, config: Config) -> None:
        tasks = {
            "SweepLeases": ("leases", _every(minutes=config.sweep_interval_minutes)),
            "SweepStrays": ("strays", _daily(hour=3)),
            "ReconcileSplits": ("reconcile", _every(minutes=1)),
            "SweepSplits": ("strays", _daily(hour=4)),
            "SweepKeptMessages": ("kept", _every(minutes=5)),
            "ExpireQueues": ("expire", _every(minutes=1)),
            "SweepExchanges": ("strays", _daily(hour=5)),
            "ConnectQueues": ("connect", _every(minutes=1)),
            "MeasureQueues": ("measure", _every(minutes=5)),
            "SweepSessions": ("sweep", _every(minutes=5)),
        }
        for name, (task, expression) in tasks.items():
            self.schedules.invoke(name, self._calls[name], payload={"task": task}, expression=expression)
        schedule(self.jobs.values(), self.schedules, config)

    @property
    def _writers(self) -> Iterator[Function]:
        """The functions that write history."""
        for capability in (self.rendezvous, self.splitting, self.exchange, self.live):
            yield from (function for name, function in capability.functions.items() if name not in READERS)

    @property
    def _calls(self) -> dict[str, Function]:
        """The targets of the schedules, by name."""
        sweep, splitting = self.rendezvous.functions["sweep"], self.splitting.functions["control"]
        exchange = self.exchange.functions["control"]
        return {
            **dict.fromkeys(("SweepLeases", "SweepStrays"), sweep),
            **dict.fromkeys(("ReconcileSplits", "SweepSplits", "SweepKeptMessages"), splitting),
            **dict.fromkeys(("ExpireQueues", "SweepExchanges", "ConnectQueues", "MeasureQueues"), exchange),
            "SweepSessions": self.live.functions["session"],
        }

    def _name_results(self, state: StateStack, config: Config, bridges: Sequence[str]) -> None:
        broker, api = self.rendezvous.broker, self.rendezvous.api
        results = {
            "BrokerQueueUrl": broker.queue.queue_url,
            "BrokerQueueArn": broker.queue.queue_arn,
            "BrokerQueueName": config.broker_queue,
            "DeadLetterQueueUrl": broker.dead_letters.queue_url,
            "RendezvousUrl": api.stage.url,
            "RendezvousApiId": api.api.api_id,
            "HistoryBucket": state.history_bucket.bucket_name,
            "HistoryStream": self.lake.stream.delivery_stream_name,
            "HistoryDatabase": self.lake.database_name,
            "HistoryTable": TABLE,
            "HistoryReaderArn": self.lake.reader_role.role_arn,
            "RendezvousTable": state.rendezvous_table.table_name,
            "LeaseTable": state.lease_table.table_name,
            "ClientUserName": self.rendezvous.client_user.user_name,
            "ClientSecretArn": state.client_secret.secret_arn,
            "SweepFunctionName": self.rendezvous.functions["sweep"].function_name,
            "ClientQueuePrefix": config.client_queue_prefix,
            "BridgeFingerprints": ",".join(bridges),
            "ReportJobName": self.jobs["Report"].job.job_name,
            "ReportPrefix": REPORT_PREFIX,
            **self._splitting_results(state, config),
            **self._exchange_results(state, config),
            **self._live_results(state),
            "Region": Aws.REGION,
            # Read by the next deployment, which keeps them.
            "Settings": json.dumps(recorded(config), sort_keys=True),
        }
        for name, value in results.items():
            CfnOutput(self, name, value=value)

    def _splitting_results(self, state: StateStack, config: Config) -> dict[str, str]:
        splitting = self.splitting
        return {
            "SplitControlQueueUrl": splitting.control_queue.queue_url,
            "SplitDeadLetterQueueUrl": splitting.dead_letters.queue_url,
            "SplitTable": state.split_table.table_name,
            "SplitFunctionName": splitting.functions["split"].function_name,
            "ControlFunctionName": splitting.functions["control"].function_name,
            "SplitReplyQueueUrl": splitting.replies.queue_url,
            "TemporaryQueuePrefix": config.temporary_queue_prefix,
            "SplitReportJobName": self.jobs["SplitReport"].job.job_name,
            "SplitReportPrefix": SPLIT_REPORT_PREFIX,
            "SplitUserPolicyArn": splitting.user_policy.managed_policy_arn,
        }

    def _exchange_results(self, state: StateStack, config: Config) -> dict[str, str]:
        exchange = self.exchange
        return {
            "ExchangeControlQueueUrl": exchange.control_queue.queue_url,
            "ExchangeReplyQueueUrl": exchange.replies.queue_url,
            "ExchangePrefix": config.exchange_prefix,
            "ExchangeDeadLetterQueueUrl": exchange.dead_letters.queue_url,
            "ExchangeTable": state.exchange_table.table_name,
            "RouteFunctionName": exchange.functions["route"].function_name,
            "RouteFunctionArn": exchange.functions["route"].function_arn,
            "ExchangeControlFunctionName": exchange.functions["control"].function_name,
        }

    def _live_results(self, state: StateStack) -> dict[str, str]:
        live = self.live
        return {
            "LiveWebSocketUrl": live.websocket.stage.url,
            "LiveWebSocketApiId": live.websocket.api.api_id,
            "LivePageUrl": f"{live.page.stage.url}live/",
            "LivePageApiId": live.page.api.api_id,
            "LiveTable": state.live_table.table_name,
            "LiveInboxUrl": live.inbox.queue_url,
            "LiveOutboxUrl": live.outbox.queue_url,
            "LiveDeadLetterQueueUrl": live.dead_letters.queue_url,
            "LiveOrderedDeadLetterQueueUrl": live.ordered_dead_letters.queue_url,
            "SessionFunctionName": live.functions["session"].function_name,
            "DeliverFunctionName": live.functions["deliver"].function_name,
        }


def _every(*, minutes: int) -> scheduler.ScheduleExpression:
    return scheduler.ScheduleExpression.rate(Duration.minutes(minutes))


def _daily(*, hour: int) -> scheduler.ScheduleExpression:
    return scheduler.ScheduleExpression.cron(minute="10", hour=str(hour), time_zone=TimeZone.ETC_UTC)
