"""Questions about SQS: a queue that is created again, the form of a SenderId, fair queues, and refused dead letters."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from signalbox.aws.doctor.probes import queue_sources
from signalbox.aws.rendezvous.queues import CAPABILITY as RENDEZVOUS
from signalbox.aws.rendezvous.queues import client_queue_attributes
from signalbox.cli.exchange.stage import stage_name
from signalbox.cli.verify.fairness import BURST, IN_WORK, overtaken
from signalbox.cli.verify.trial import NamedTrial
from signalbox.clients.deployment import AwsDeployment
from signalbox.doctor.findings import Judgement
from signalbox.doctor.rules import name_prefixes, sources_finding
from signalbox.flows.trial import expect
from signalbox.queues import STAGE_TAG, own_tags
from signalbox.verify.patience import QUEUE_SECONDS, RECEIVE_SECONDS
from signalbox.verify.questions import CREATED_AGAIN, FAIRNESS, REDRIVE, SENDER
from signalbox.verify.report import Answer, shape

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

CAPABILITY = "SQS"
CLIENT_USER = "-snowflake-client"  # after the name of the stage


def verify_sqs(trial: NamedTrial) -> None:
    """Run all steps."""
    journal = trial.journal
    sqs = trial.deployment.session().client("sqs")
    parts = trial.deployment.capabilities
    if "rendezvous" in parts:
        _verify_creation(trial, sqs)
    with journal.step(CAPABILITY, "a sender's id") as timing:
        timing.detail = _sender_id(trial, sqs)
    if "exchange" in parts and isinstance(trial.deployment, AwsDeployment):
        with journal.step(CAPABILITY, "a burst of one publisher delays others less") as timing:
            timing.detail = _fairness(trial, sqs)
    if "exchange" in parts:
        with journal.step(CAPABILITY, "queues refuse the dead letters of others") as timing:
            timing.detail = _refused_redrive(trial, sqs)


def _verify_creation(trial: NamedTrial, sqs: "SQSClient") -> None:
    journal = trial.journal
    with journal.step(CAPABILITY, "a queue is created again") as timing:
        answer = _created_again(trial, sqs)
        is_same = answer["the same policy text"] == "the same queue"
        journal.answer(CREATED_AGAIN, answer, is_expected=is_same)
        expect(is_same, CREATED_AGAIN.otherwise)
        timing.detail = f"an equal policy in other words: {answer['an equal policy in other words']}"


def _created_again(trial: NamedTrial, sqs: "SQSClient") -> dict[str, Answer]:
    """Create a client queue as `offer` does, again with the same attributes, and with an equal policy."""
    name = f"{trial.deployment.outputs['ClientQueuePrefix']}{trial.names.client_id('000000')}"
    arn = f"{trial.deployment.outputs['BrokerQueueArn'].rpartition(':')[0]}:{name}"
    stage = trial.deployment.outputs["ClientUserName"].removesuffix(CLIENT_USER)
    attributes = client_queue_attributes(arn, message_id="verify", stage=stage)
    tags = own_tags(stage=stage, capability=RENDEZVOUS)
    url = sqs.create_queue(QueueName=name, Attributes=attributes, tags=tags)["QueueUrl"]
    policy = json.loads(attributes["Policy"])
    reordered = json.dumps(dict(reversed(policy.items())), indent=1)

    def again(changed: Mapping["QueueAttributeNameType", str], other_tags: Mapping[str, str] = tags) -> str:
        try:
            made = sqs.create_queue(QueueName=name, Attributes={**attributes, **changed}, tags=other_tags)["QueueUrl"]
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        return "the same queue" if made == url else "another queue"

    return {
        "the same policy text": again({}),
        "an equal policy in other words": again({"Policy": reordered}),
        "another retention": again({"MessageRetentionPeriod": "301"}),
        "other tags": again({}, {**tags, STAGE_TAG: f"not-{stage}"}),
    }


def _refused_redrive(trial: NamedTrial, sqs: "SQSClient") -> str:
    """Examine all queues of the stage, and try to have SQS move messages into the administrators' control queue."""
    outputs = trial.deployment.outputs
    stage = stage_name(outputs["ExchangeControlQueueUrl"])
    prefixes = name_prefixes(
        stage,
        exchanges=outputs["ExchangePrefix"],
        temporary=outputs.get("TemporaryQueuePrefix", f"{stage}-"),
        broker=outputs.get("BrokerQueueName", f"{stage}-"),
    )
    finding = sources_finding(queue_sources(trial.deployment.session(), prefixes, stage=stage))
    expect(finding.verdict is Judgement.OK, finding.text)
    name = outputs["ExchangeControlQueueUrl"].rpartition("/")[2]
    arn = outputs["RouteFunctionArn"].partition(":function:")[0].replace(":lambda:", ":sqs:")
    redrive = {"deadLetterTargetArn": f"{arn}:{name}", "maxReceiveCount": 1}
    try:
        sqs.create_queue(QueueName=trial.names.strange_queue, Attributes={"RedrivePolicy": json.dumps(redrive)})
    except ClientError as error:
        code = str(error.response["Error"]["Code"])
    else:
        code = "none"
    trial.journal.answer(REDRIVE, {"code": code}, is_expected=code != "none")
    expect(code != "none", "a queue may use the administrators' control queue as its dead-letter queue")
    return finding.text


def _fairness(trial: NamedTrial, sqs: "SQSClient") -> str:
    """Measure on the queue of the step before; the local stage has no fair queues."""
    waiting, before = BURST - IN_WORK, overtaken(sqs, sqs.get_queue_url(QueueName=trial.names.probe_queue)["QueueUrl"])
    answer: dict[str, Answer] = {"of_the_burst_before": before, "of_the_burst_waiting": waiting}
    trial.journal.answer(FAIRNESS, answer, is_expected=before < waiting / 2)
    return f"{before} of {waiting} messages of a burst came before those of another group"


def _sender_id(trial: NamedTrial, sqs: "SQSClient") -> str:
    url = sqs.create_queue(QueueName=trial.names.probe_queue)["QueueUrl"]

    def is_sent() -> bool:
        try:
            sqs.send_message(QueueUrl=url, MessageBody="who sends this?")
        except sqs.exceptions.QueueDoesNotExist:
            return False
        return True

    trial.wait_until(is_sent, "a new queue takes a message", seconds=QUEUE_SECONDS)
    found: list[str] = []

    def is_received() -> bool:
        received = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=5, MessageSystemAttributeNames=["SenderId"])
        found.extend(one["Attributes"]["SenderId"] for one in received.get("Messages", ()))
        return bool(found)

    trial.wait_until(is_received, "the message is received", seconds=RECEIVE_SECONDS, pause=0)
    user_id = trial.deployment.session().client("sts").get_caller_identity()["UserId"]
    answer: dict[str, Answer] = {"form": shape(found[0]), "equals_the_UserId_of_STS": found[0] == user_id}
    trial.journal.answer(SENDER, answer, is_expected=found[0] == user_id)
    return shape(found[0])
