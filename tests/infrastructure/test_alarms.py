"""The alarms and the dashboard of a stage."""

import json

import pytest

from stacks.shared.alarms import ESSENTIAL
from tests.infrastructure.other_settings import TOPIC
from tests.infrastructure.templates import templates
from tests.infrastructure.test_resources import FUNCTIONS, JOBS, LIVE_QUEUES, RETRIES

QUEUES = "AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html"
LAMBDA = "lambda/latest/dg/monitoring-metrics-types.html"
FIREHOSE = "firehose/latest/dev/monitoring-with-cloudwatch-metrics.html"
# The metrics of alarms with their dimensions and statistic, and the pages of docs.aws.amazon.com that document them.
DOCUMENTED = {
    ("AWS/SQS", "ApproximateAgeOfOldestMessage", ("QueueName",), "Maximum"): QUEUES,
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible", ("QueueName",), "Maximum"): QUEUES,
    ("AWS/Lambda", "Errors", ("FunctionName",), "Sum"): LAMBDA,
    ("AWS/Lambda", "Throttles", ("FunctionName",), "Sum"): LAMBDA,
    ("AWS/ApiGateway", "5xx", ("ApiId", "Stage"), "Sum"): "apigateway/latest/developerguide/http-api-metrics.html",
    ("AWS/Firehose", "DeliveryToS3.DataFreshness", ("DeliveryStreamName",), "Maximum"): FIREHOSE,
    ("AWS/Firehose", "FailedConversion.Records", ("DeliveryStreamName",), "Sum"): FIREHOSE,
    # The name of a rule alone is for the default bus, to which Glue sends its events.
    ("AWS/Events", "TriggeredRules", ("RuleName",), "Sum"): "eventbridge/latest/userguide/eb-monitoring.html",
    ("Signalbox", "OldestMessageAge", ("service", "stage"), "Maximum"): "",  # of the stage itself
    ("Signalbox/signalbox", "FailedRuns", (), "Sum"): "",
}
# Of a report that is logged at the level WARN or below; AWS documents its statuses, and that they are no success:
# https://docs.aws.amazon.com/lambda/latest/dg/telemetry-schema-reference.html#platform-report
FAILED_RUN = (
    '{ $.type = "platform.report" && ($.record.status = "error" || $.record.status = "failure" || '
    '$.record.status = "timeout") }'
)
# Functions whose failed runs show in the age of a FIFO queue, or to visitors of the live page.
SHOWN_ELSEWHERE = {"Live/Session", "Live/Deliver", "Live/Overview", "Live/Page"}


def test_every_alarm_is_on_a_documented_metric_with_its_dimensions_and_a_statistic_that_fits(stage):
    """An alarm on a metric that AWS does not send is never raised, since missing data is healthy."""
    found = {}
    for name, alarm in stage.every("AWS::CloudWatch::Alarm").items():
        of = alarm["Properties"]
        dimensions = tuple(sorted(one["Name"] for one in of.get("Dimensions", ())))
        found[of["Namespace"], of["MetricName"], dimensions, of["Statistic"]] = name
        assert of["Period"] in (60, 300), name

    assert set(found) == set(DOCUMENTED)


def test_every_alarm_handles_missing_data_and_links_to_the_operations_page(stage):
    for name, alarm in stage.every("AWS::CloudWatch::Alarm").items():
        assert alarm["Properties"]["TreatMissingData"] == "notBreaching", name
        assert alarm["Properties"]["AlarmDescription"].endswith("See docs/operations.md."), name


def test_every_function_and_queue_has_its_alarms(stage):
    alarms = set(stage.every("AWS::CloudWatch::Alarm"))

    # An alarm is in the stack of the stage, which does not outlive it.
    watched = {function.replace("Doors/", "Rendezvous/") for function in FUNCTIONS}
    expected = {f"{function}/{kind}" for function in watched for kind in ("Errors", "Throttles")}
    expected |= {"Rendezvous/AgeAlarm", "Rendezvous/DeadOffers/Alarm", "Schedules/DeadCalls/Alarm"}
    expected |= {"FailedRuns", "Rendezvous/Api/ServerErrors", *(f"{job}/Failed" for job in JOBS)}
    expected |= {"Splitting/AgeAlarm", "Splitting/DeadLetters/Alarm"}
    expected |= {f"Exchange/{queue}/AgeAlarm" for queue in ("Commands", *RETRIES)}
    expected |= {"Exchange/BacklogAlarm", "Exchange/DeadLetters/Alarm"}
    expected |= {f"Live/{queue}/AgeAlarm" for queue in (*LIVE_QUEUES, "OverviewCalls")}
    expected |= {"Live/OrderedDeadLetters/Alarm", "Live/Api/ServerErrors"}
    expected |= {"HistoryLake/DeliveryFailing", "HistoryLake/ConversionFailing"}
    expected |= {"HistoryOverflow/AgeAlarm"}
    assert alarms == expected


def test_the_failed_runs_of_the_functions_that_others_wait_for_raise_one_alarm(stage):
    filters = stage.every("AWS::Logs::MetricFilter")
    alarm = stage.every("AWS::CloudWatch::Alarm")["FailedRuns"]["Properties"]

    assert set(filters) == {f"{name}Logs/FailedRuns" for name in FUNCTIONS - SHOWN_ELSEWHERE}
    for name, one in filters.items():
        (made,) = one["Properties"]["MetricTransformations"]
        assert (made["MetricNamespace"], made["MetricName"]) == (alarm["Namespace"], alarm["MetricName"]), name
        assert made["MetricValue"] == "1", name
        assert one["Properties"]["FilterPattern"] == FAILED_RUN, name
    for name, function in stage.every("AWS::Lambda::Function").items():
        logging = function["Properties"]["LoggingConfig"]
        assert logging["LogFormat"] == "JSON", name
        assert logging["SystemLogLevel"] in ("INFO", "WARN"), name


def test_by_default_the_alarms_are_those_of_each_way_to_stall_lose_or_fail():
    stage = templates()

    assert set(stage.every("AWS::CloudWatch::Alarm")) == set(ESSENTIAL)
    assert not stage.every("AWS::CloudWatch::Dashboard")
    assert not any("TracingConfig" in one["Properties"] for one in stage.every("AWS::Lambda::Function").values())


@pytest.mark.parametrize("every_alarm", ["true", "false"])
def test_the_dashboard_shows_every_alarm(every_alarm):
    stage = templates(dashboard="true", every_alarm=every_alarm)
    (dashboard,) = stage.every("AWS::CloudWatch::Dashboard").values()
    widgets = json.loads(stage.text(dashboard["Properties"]["DashboardBody"]))["widgets"]

    (shown,) = (one["properties"]["alarms"] for one in widgets if one["type"] == "alarm")
    assert sorted(shown) == sorted(stage.every("AWS::CloudWatch::Alarm"))


def test_the_dashboard_averages_nothing(stage):
    """The average of a count is 1."""
    (dashboard,) = stage.every("AWS::CloudWatch::Dashboard").values()
    body = json.loads(stage.text(dashboard["Properties"]["DashboardBody"]))

    metrics = [one for widget in body["widgets"] for one in widget["properties"].get("metrics", ())]
    assert [one for one in metrics if one[-1].get("stat", "Average") == "Average"] == []
    assert len(metrics) > 50


def test_alarms_notify_the_topic_of_the_setting(otherwise):
    for name, alarm in otherwise.every("AWS::CloudWatch::Alarm").items():
        assert alarm["Properties"]["AlarmActions"] == [TOPIC], name
