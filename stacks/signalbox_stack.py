"""The stack of a stage: capabilities composed, permissions granted, results named."""

from aws_cdk import Aws, CfnOutput, Duration, Stack, TimeZone
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from stacks.config import Config
from stacks.exchange import Exchange
from stacks.exchange_grants import grant_exchange
from stacks.function import Function, program
from stacks.grants import grant_delivery, grant_rendezvous, grant_report, grant_schedules
from stacks.history_lake import TABLE, HistoryLake
from stacks.monitoring import Monitoring
from stacks.rendezvous import Rendezvous
from stacks.report_job import RENDEZVOUS, SPLITTING, ReportJob
from stacks.schedules import SCHEDULED_TIME, Schedules
from stacks.splitting import Splitting
from stacks.splitting_grants import grant_splitting
from stacks.state_stack import REPORT_PREFIX, SPLIT_REPORT_PREFIX, StateStack

# The first one's name in the template is older than the second report.
REPORTS = {"Report": RENDEZVOUS, "SplitReport": SPLITTING}


class SignalboxStack(Stack):
    """Everything but state; safe to delete."""

    def __init__(self, scope: Construct, name: str, *, state: StateStack, config: Config, **options: object) -> None:
        super().__init__(scope, name, **options)  # type: ignore[arg-type]  # passed through to the stack
        key = state.state_key
        self.lake = HistoryLake(self, "HistoryLake", bucket=state.history_bucket, key=key, config=config)
        built, stream = program(self, config), self.lake.stream.delivery_stream_name
        self.rendezvous = Rendezvous(self, "Rendezvous", state=state, stream_name=stream, program=built, config=config)
        self.splitting = Splitting(self, "Splitting", state=state, lake=self.lake, program=built, config=config)
        self.exchange = Exchange(self, "Exchange", state=state, stream_name=stream, program=built, config=config)
        self.reports = {
            name: ReportJob(self, name, report=report, bucket=state.history_bucket, key=key, config=config)
            for name, report in REPORTS.items()
        }
        self.schedules = Schedules(self, "Schedules", key=state.queue_key, config=config)
        self._schedule(config)
        self.monitoring = Monitoring(
            self,
            "Monitoring",
            rendezvous=self.rendezvous,
            splitting=self.splitting,
            exchange=self.exchange,
            lake=self.lake,
            reports=self.reports,
            schedules=self.schedules,
            config=config,
        )
        grant_rendezvous(self.rendezvous, state=state, lake=self.lake, config=config)
        grant_splitting(self.splitting, state=state, lake=self.lake, config=config)
        grant_exchange(self.exchange, state=state, lake=self.lake, config=config)
        grant_delivery(self.lake, state=state)
        for report in self.reports.values():
            grant_report(report, state=state)
        grant_schedules(self.schedules, calls=self._calls, jobs=self.reports, state=state)
        self._name_results(state, config)

    def _schedule(self, config: Config) -> None:
        tasks = {
            "SweepLeases": ("leases", _every(minutes=config.sweep_interval_minutes)),
            "SweepStrays": ("strays", _daily(hour=3)),
            "ReconcileSplits": ("reconcile", _every(minutes=1)),
            "SweepSplits": ("strays", _daily(hour=4)),
            "ExpireQueues": ("expire", _every(minutes=1)),
            "SweepExchanges": ("strays", _daily(hour=5)),
        }
        for name, (task, expression) in tasks.items():
            self.schedules.invoke(name, self._calls[name], payload={"task": task}, expression=expression)
        for name, report in self.reports.items():
            self.schedules.start_job(
                name,
                report.job.job_name,
                arguments={"--day": SCHEDULED_TIME},
                expression=_daily(hour=config.report_hour_utc),
            )

    @property
    def _calls(self) -> dict[str, Function]:
        """What the schedules call, by their names."""
        sweep, splitting = self.rendezvous.functions["sweep"], self.splitting.functions["control"]
        exchange = self.exchange.functions["control"]
        return {
            **dict.fromkeys(("SweepLeases", "SweepStrays"), sweep),
            **dict.fromkeys(("ReconcileSplits", "SweepSplits"), splitting),
            **dict.fromkeys(("ExpireQueues", "SweepExchanges"), exchange),
        }

    def _name_results(self, state: StateStack, config: Config) -> None:
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
            "HistoryDatabase": self.lake.database.database_name,
            "HistoryTable": TABLE,
            "RendezvousTable": state.rendezvous_table.table_name,
            "LeaseTable": state.lease_table.table_name,
            "ClientUserName": self.rendezvous.client_user.user_name,
            "ClientSecretArn": state.client_secret.secret_arn,
            "SweepFunctionName": self.rendezvous.functions["sweep"].function_name,
            "ClientQueuePrefix": config.client_queue_prefix,
            "ReportJobName": self.reports["Report"].job.job_name,
            "ReportPrefix": REPORT_PREFIX,
            **self._splitting_results(state, config),
            **self._exchange_results(state, config),
            "Region": Aws.REGION,
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
            "SplitReplyQueuePrefix": config.split_reply_prefix,
            "TemporaryQueuePrefix": config.temporary_queue_prefix,
            "SplitReportJobName": self.reports["SplitReport"].job.job_name,
            "SplitReportPrefix": SPLIT_REPORT_PREFIX,
            "SplitUserPolicyArn": splitting.user_policy.managed_policy_arn,
        }

    def _exchange_results(self, state: StateStack, config: Config) -> dict[str, str]:
        exchange = self.exchange
        return {
            "ExchangeControlQueueUrl": exchange.control_queue.queue_url,
            "ExchangeReplyQueuePrefix": config.exchange_reply_prefix,
            "ExchangePrefix": config.exchange_prefix,
            "ExchangeDeadLetterQueueUrl": exchange.dead_letters.queue_url,
            "ExchangeTable": state.exchange_table.table_name,
            "RouteFunctionName": exchange.functions["route"].function_name,
            "RouteFunctionArn": exchange.functions["route"].function_arn,
            "ExchangeControlFunctionName": exchange.functions["control"].function_name,
        }


def _every(*, minutes: int) -> scheduler.ScheduleExpression:
    return scheduler.ScheduleExpression.rate(Duration.minutes(minutes))


def _daily(*, hour: int) -> scheduler.ScheduleExpression:
    return scheduler.ScheduleExpression.cron(minute="10", hour=str(hour), time_zone=TimeZone.ETC_UTC)
