"""The alarm factory: missing data counts as healthy, the description names the page, the topic is notified."""

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from stacks.settings.config import Config

# One for each way to stall, lose or fail, by the end of its construct path in a stage or an app. The others name the
# function, queue or job. The age of a standard queue leaves out messages that were received three times, so the failed
# runs of its readers have their own alarm:
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
ESSENTIAL = (
    "FailedRuns",
    "Rendezvous/AgeAlarm",
    "Splitting/DeadLetters/Alarm",
    "Exchange/BacklogAlarm",
    "Exchange/DeadLetters/Alarm",
    "Live/Inbox/AgeAlarm",
    "Live/Outbox/AgeAlarm",
    "HistoryLake/ConversionFailing",
    "HistoryLake/DeliveryFailing",
    "Day/Failed",
    "ExportLogs/Failed",
    "Schedules/DeadCalls/Alarm",
)


def alarm(
    scope: Construct,
    name: str,
    *,
    metric: cloudwatch.IMetric,
    description: str,
    config: Config,
    threshold: float = 1,
    periods: int = 1,
) -> None:
    """Create an alarm on a metric at or above the threshold in every period, if the stage has it.

    Missing data is healthy.
    """
    path = f"{scope.node.path}/{name}"
    is_essential = any(path.endswith(f"/{one}") for one in ESSENTIAL)
    if not config.alarms or not (config.every_alarm or is_essential):
        return
    made = cloudwatch.Alarm(
        scope,
        name,
        metric=metric,
        threshold=threshold,
        comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        evaluation_periods=periods,
        treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        alarm_description=f"{description} See docs/operations.md.",
    )
    if config.alarm_topic_arn:
        topic = sns.Topic.from_topic_arn(scope, f"{name}Topic", config.alarm_topic_arn)
        made.add_alarm_action(actions.SnsAction(topic))
