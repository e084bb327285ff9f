"""The effect of settings on the exchange's resources: names, permissions and retry times."""

import json
from collections.abc import Iterator
from datetime import timedelta
from fnmatch import fnmatchcase

import pytest

from signalbox.aws.shared.telemetry import measure_oldest_message
from signalbox.control.protocol import REPLY_RETENTION, REPLY_VISIBILITY
from signalbox.exchange.model.events import CAPABILITY
from signalbox.exchange.model.names import StageNames, dead_letter_name
from signalbox.sarracenia.rights.names import MAXIMUM_USER_LENGTH, ExchangeName, UserName
from stacks.settings.choices import EXCHANGE_PREFIX
from tests.infrastructure.templates import Templates, as_list

SQS = "arn:<Partition>:sqs:<Region>:<AccountId>"
ROUTE, CONTROL = "Exchange/RouteRole", "Exchange/ControlRole"
NAMED = [StageNames("signalbox"), StageNames("trial", "trial-")]


def allowed(stage: Templates, role: str, *, action: str) -> Iterator[tuple[str, object]]:
    """Yield each resource for which a role has an action, with its condition."""
    policies = (f"{role}/DefaultPolicy", f"{role.removesuffix('Role')}/OwnMappings")
    for name, statement in stage.statements():
        if name in policies and action in as_list(statement["Action"]):
            yield from ((stage.text(r), statement.get("Condition")) for r in as_list(statement["Resource"]))


def names(stage: Templates, role: str, *, action: str) -> list[str]:
    """Return the name patterns of the queues for which a role has an action."""
    found = (resource for resource, _ in allowed(stage, role, action=action))
    return [resource.removeprefix(f"{SQS}:") for resource in found if resource.startswith(SQS)]


def may(stage: Templates, role: str, *, action: str, queue: str) -> bool:
    return any(fnmatchcase(queue, pattern) for pattern in names(stage, role, action=action))


@pytest.mark.parametrize("named", NAMED, ids=lambda named: named.stage)
@pytest.mark.parametrize("name", ["xpublic", "xs_alice", "xs_alice_images.fifo", "xreport"])
def test_queues_of_exchanges_can_be_created_and_read(name, named, stage, otherwise):
    stage, queue = otherwise if named.prefix else stage, named.queue(name)

    assert may(stage, ROUTE, action="sqs:ReceiveMessage", queue=queue)
    assert may(stage, ROUTE, action="sqs:SendMessage", queue=dead_letter_name(queue))
    assert not may(stage, ROUTE, action="sqs:SendMessage", queue=queue)
    for made in (queue, dead_letter_name(queue)):
        assert may(stage, CONTROL, action="sqs:CreateQueue", queue=made)


@pytest.mark.parametrize("named", NAMED, ids=lambda named: named.stage)
@pytest.mark.parametrize("name", ["q_alice", "q_alice.subscribe.weather.host_1234", "q_alice_" + 90 * "x" + ".fifo"])
def test_declared_queues_can_be_created_and_written_but_not_read(name, named, stage, otherwise):
    stage, queue = otherwise if named.prefix else stage, named.queue(name)

    for made in (queue, dead_letter_name(queue)):
        assert may(stage, CONTROL, action="sqs:CreateQueue", queue=made)
        assert may(stage, ROUTE, action="sqs:SendMessage", queue=made)
        assert not may(stage, ROUTE, action="sqs:ReceiveMessage", queue=made)
    assert not may(stage, CONTROL, action="sqs:ReceiveMessage", queue=queue)
    assert may(stage, CONTROL, action="sqs:ReceiveMessage", queue=dead_letter_name(queue))


def test_commands_are_read_where_the_administrators_and_users_send_them(stage):
    named = StageNames("signalbox")
    own = stage.every("AWS::SQS::Queue")["Exchange/Commands"]["Properties"]

    assert own["QueueName"] == named.control_queue(None)
    replies = stage.every("AWS::SQS::Queue")["Exchange/Replies"]["Properties"]
    assert replies["QueueName"] == named.reply_queue(None)
    assert replies["MessageRetentionPeriod"] == REPLY_RETENTION.total_seconds()
    assert replies["VisibilityTimeout"] == REPLY_VISIBILITY.total_seconds()
    for user in (UserName("alice"), UserName("a-b")):
        assert may(stage, CONTROL, action="sqs:ReceiveMessage", queue=named.control_queue(user))
        assert may(stage, CONTROL, action="sqs:SendMessage", queue=named.reply_queue(user))
        assert not may(stage, CONTROL, action="sqs:SendMessage", queue=named.control_queue(user))


def test_permissions_rest_on_what_the_longest_names_keep():
    longest, user = int(EXCHANGE_PREFIX.split(",")[1].rstrip("}")) * "p", UserName(MAXIMUM_USER_LENGTH * "u")

    for family in ("q_", "xs_"):
        whole = f"{longest}{family}{user}_"
        shortened = StageNames("signalbox", longest).queue(f"{family}{user}_{90 * 'x'}.fifo")
        assert dead_letter_name(shortened).startswith(whole)


def test_times_and_names_follow_from_the_settings(otherwise):
    queues, functions = otherwise.every("AWS::SQS::Queue"), otherwise.every("AWS::Lambda::Function")

    assert functions["Exchange/Route"]["Properties"]["Timeout"] == 20
    assert otherwise.stage["Outputs"]["ExchangePrefix"]["Value"] == "trial-"
    for name, called in (("Retries", "trial-exchange-retries"), ("OrderedRetries", "trial-exchange-retries.fifo")):
        queue = queues[f"Exchange/{name}"]["Properties"]
        assert (queue["QueueName"], queue["VisibilityTimeout"], queue["MessageRetentionPeriod"]) == (called, 25, 600)
    control = functions["Exchange/Control"]["Properties"]["Environment"]["Variables"]
    assert control["ROUTE_CONCURRENCY"] == "7"


def test_the_functions_know_the_retry_queues_by_their_names(stage):
    queues, names = stage.every("AWS::SQS::Queue"), StageNames("signalbox")

    for name, exchange in (("Retries", "xpublic"), ("OrderedRetries", "xs_a.fifo")):
        assert queues[f"Exchange/{name}"]["Properties"]["QueueName"] == names.retry_queue(ExchangeName(exchange))


def test_ordered_retries_use_fifo_queues(stage):
    ordered = {name for name, q in stage.every("AWS::SQS::Queue").items() if q["Properties"].get("FifoQueue")}

    assert {name for name in ordered if name.startswith("Exchange/")} == {"Exchange/OrderedRetries"}


def test_a_delivery_that_fails_ten_times_raises_an_alarm(stage):
    for name in ("Retries", "OrderedRetries"):
        alarm = stage.every("AWS::CloudWatch::Alarm")[f"Exchange/{name}/AgeAlarm"]["Properties"]
        assert alarm["Threshold"] == 10 * 30


def test_what_failed_twice_is_received_again_within_two_minutes(stage):
    route = stage.every("AWS::Lambda::Function")["Exchange/Control"]["Properties"]["Environment"]["Variables"]
    queues = stage.every("AWS::SQS::Queue")

    assert 2 * int(route["EXCHANGE_VISIBILITY_SECONDS"]) < 120
    for name in queues.keys() - {"HistoryOverflow/Queue"}:
        assert 2 * queues[name]["Properties"].get("VisibilityTimeout", 30) < 120, name


def test_an_alarm_watches_the_queues_that_no_template_contains(stage, capsys):
    alarm = stage.every("AWS::CloudWatch::Alarm")["Exchange/BacklogAlarm"]["Properties"]
    measure_oldest_message(timedelta(seconds=9), capability=CAPABILITY, stage="signalbox")
    written = json.loads(capsys.readouterr().out)
    (directive,) = written["_aws"]["CloudWatchMetrics"]

    assert (alarm["Namespace"], alarm["MetricName"]) == (directive["Namespace"], directive["Metrics"][0]["Name"])
    dimensions = {one["Name"]: one["Value"] for one in alarm["Dimensions"]}
    assert dimensions == {name: written[name] for name in directive["Dimensions"][0]}
    # A message whose function failed once is received again after the visibility timeout, which is no alarm yet.
    assert alarm["Threshold"] > 6 * 15
    assert alarm["TreatMissingData"] == "notBreaching"
