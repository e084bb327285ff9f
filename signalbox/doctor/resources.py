"""Rules of the doctor on a stage's version, and on what it uses: a topic, a queue, the catalog's rights, IAM users."""

from dataclasses import dataclass

from signalbox.doctor.findings import Finding, ok, stop, unchecked, warn

VERSION, TOPIC = "version", "alarm topic"
# Its policy admits the account's own principals only, and cannot be changed.
# https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html#compatibility-with-aws-services
AWS_MANAGED_KEY = "alias/aws/sns"


def version_finding(stage: str, deployed: str | None, *, command: str) -> Finding:
    """Return the finding that names the versions of the command and of a stage; None is a stage that does not exist."""
    state = "is not deployed" if deployed is None else f"has {deployed}"
    return ok(VERSION, f"{command} of this command; stage {stage} {state}")


@dataclass(frozen=True, slots=True)
class AlarmTopic:
    """A topic of SNS; `key` is the id, ARN or alias of its key, or empty."""

    key: str = ""


def topic_finding(arn: str, topic: AlarmTopic | None) -> Finding:
    """Return the finding on the topic that alarms notify; None is one that does not exist."""
    if topic is None:
        return stop(
            TOPIC, f"{arn} does not exist", remedy="correct alarm_topic_arn: every alarm would fail to notify it"
        )
    if topic.key.endswith(AWS_MANAGED_KEY):
        return stop(
            TOPIC,
            f"{arn} is encrypted with {AWS_MANAGED_KEY}, which CloudWatch may not use: no alarm would arrive",
            remedy="encrypt the topic with a key of your own whose policy allows cloudwatch.amazonaws.com kms:Decrypt "
            "and kms:GenerateDataKey*",
        )
    return ok(TOPIC, arn)


QUEUE = "broker queue"


def broker_queue_finding(name: str, visibility_seconds: int | None, *, needed: int) -> Finding:
    """Return the finding on an existing broker queue; `visibility_seconds` is None for one that does not exist."""
    if visibility_seconds is None:
        return stop(QUEUE, f"{name} does not exist", remedy="correct broker_queue_arn, or leave it out")
    text = f"{name} has a visibility time-out of {visibility_seconds} s"
    remedy = f"aws sqs set-queue-attributes --queue-url <its URL> --attributes VisibilityTimeout={needed}"
    if visibility_seconds < needed:
        return stop(QUEUE, f"{text}, and Lambda refuses to read a queue with less than {needed} s", remedy=remedy)
    if visibility_seconds > needed:
        return warn(
            QUEUE, f"{text}: so long waits a client whose function was killed, and whose proxy is silent", remedy=remedy
        )
    return ok(QUEUE, text)


CATALOG = "Lake Formation"


def catalog_finding(database: str, *, is_governed: bool) -> Finding:
    """Return the finding on the rights to new databases and tables of Glue's catalog.

    https://docs.aws.amazon.com/lake-formation/latest/dg/change-settings.html
    """
    if not is_governed:
        return ok(CATALOG, "IAM alone decides on new databases and tables")
    return warn(
        CATALOG,
        f"it governs new databases and tables: Firehose, the jobs and Athena are denied in {database}",
        remedy="docs/history.md#lake-formation has the permissions that an administrator of the data lake grants",
    )


USERS = "IAM users"
USER_ACTIONS = ("iam:CreateUser", "iam:CreateAccessKey")


@dataclass(frozen=True, slots=True)
class DeniedUserActions:
    """Which of `USER_ACTIONS` an organization denies to the role with which the CDK deploys, and which IAM denies."""

    denied_by_organization: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()


def users_finding(stage: str, rights: DeniedUserActions | None) -> Finding:
    """Return the finding on the users of a stage, whose keys clients need; `rights` is None without the CDK's role."""
    if rights is None:
        return unchecked(USERS, "the CDK's role does not exist yet", remedy="deploy with --bootstrap")
    if rights.denied_by_organization:
        return stop(
            USERS,
            f"a policy of the organization denies {' and '.join(rights.denied_by_organization)}",
            remedy=f"have it except users named {stage}-* and {stage}_*, or deploy to an account without it: clients "
            "of Snowflake and users of the exchange sign with keys of IAM users, and have no other credentials",
        )
    if rights.denied:
        return warn(
            USERS,
            f"the CDK's role may not call {' and '.join(rights.denied)}",
            remedy="allow it, or bootstrap with an execution policy that does",
        )
    return ok(USERS, "may be made")
