"""EventBridge schedules with one role, a shared dead-letter queue and explicit retries."""

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import Aws, Duration, RemovalPolicy, TimeZone
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from constructs import Construct

from stacks.settings.config import Config
from stacks.shared.queue import DeadLetterQueue

# The most that EventBridge Scheduler allows, so that only the age ends the retries of a call.
RETRIES = 185
# After one hour without success the schedule has invoked its target again.
OLDEST_CALL = Duration.hours(1)
SCHEDULED_TIME = scheduler.ContextAttribute.scheduled_time


@dataclass(frozen=True, slots=True)
class Task:
    """A scheduled task of a function: its name in the payload, and when it runs."""

    function: lambda_.IFunction
    task: str
    expression: scheduler.ScheduleExpression


def every(*, minutes: int) -> scheduler.ScheduleExpression:
    """Return the expression of an interval."""
    return scheduler.ScheduleExpression.rate(Duration.minutes(minutes))


def daily(*, hour: int) -> scheduler.ScheduleExpression:
    """Return the expression of ten minutes past an hour of each day, in UTC."""
    return scheduler.ScheduleExpression.cron(minute="10", hour=str(hour), time_zone=TimeZone.ETC_UTC)


class Schedules(Construct):
    """A group of schedules; the permissions of its role are in `stacks/grants/schedules.py`."""

    def __init__(self, scope: Construct, name: str, *, key: kms.IKey, config: Config) -> None:
        super().__init__(scope, name)
        # CDK's default retains the group, and its fixed name would then block the next deployment of the stack.
        self.group = scheduler.ScheduleGroup(
            self, "Group", schedule_group_name=f"{config.stage}-schedules", removal_policy=RemovalPolicy.DESTROY
        )
        self.dead_letters = DeadLetterQueue(
            self, "DeadCalls", key=key, config=config, holds="Scheduled calls that could not be made"
        )
        group = {"aws:SourceAccount": Aws.ACCOUNT_ID, "aws:SourceArn": self.group.schedule_group_arn}
        principal = iam.ServicePrincipal("scheduler.amazonaws.com", conditions={"StringEquals": group})
        self.role = iam.Role(self, "Role", assumed_by=principal)

    def invoke(self, name: str, task: Task) -> None:
        """Invoke a function for a task by its schedule expression."""
        target = targets.LambdaInvoke(
            task.function,
            role=self._role(),
            input=scheduler.ScheduleTargetInput.from_object({"task": task.task}),
            dead_letter_queue=self.dead_letters,
            retry_attempts=RETRIES,
            max_event_age=OLDEST_CALL,
        )
        self._schedule(name, target, task.expression)

    def start_job(
        self,
        name: str,
        job_name: str,
        *,
        arguments: Mapping[str, object],
        expression: scheduler.ScheduleExpression,
    ) -> None:
        """Start a Glue job with arguments by a schedule expression."""
        target = targets.Universal(
            service="glue",
            action="startJobRun",
            role=self._role(),
            input=scheduler.ScheduleTargetInput.from_object({"JobName": job_name, "Arguments": arguments}),
            dead_letter_queue=self.dead_letters,
            retry_attempts=RETRIES,
            max_event_age=OLDEST_CALL,
            policy_statements=[_NOTHING],
        )
        self._schedule(name, target, expression)

    def _schedule(self, name: str, target: scheduler.IScheduleTarget, expression: scheduler.ScheduleExpression) -> None:
        made = scheduler.Schedule(self, name, schedule=expression, target=target, schedule_group=self.group)
        made.node.add_dependency(self.role)

    def _role(self) -> iam.IRole:
        # CDK's targets would also allow function versions and every job; stacks/grants names the targets.
        return self.role.without_policy_updates()


# Universal targets require a statement; the role does not use it.
_NOTHING = iam.PolicyStatement(actions=["glue:StartJobRun"], resources=["*"])
