"""Resources outside the stage: the name of the broker queue, and the topic of the alarms."""

from dataclasses import dataclass

from signalbox.doctor.findings import Finding, ok, stop

QUEUE, TOPIC = "broker queue", "alarm topic"


@dataclass(frozen=True, slots=True)
class NamedQueue:
    """An existing queue with the broker queue's name, and the stage in its tag; None without the tag."""

    name: str
    stage: str | None


def queue_finding(found: NamedQueue | None, *, name: str, stage: str) -> Finding:
    """Return the finding on the name of the broker queue, which the stage creates."""
    if found is None:
        return ok(QUEUE, f"the name {name} is free")
    if found.stage == stage:
        return ok(QUEUE, f"{name} is this stage's own")
    owner = f"belongs to the stage {found.stage!r}" if found.stage else "exists and is not a stage's"
    return stop(
        QUEUE,
        f"a queue {name} {owner}: the deployment would fail",
        remedy="set broker_queue_name to another name (and client_queue_prefix, for a second stage), or use the queue "
        "by broker_queue_arn",
    )


def imported_queue_finding(found: NamedQueue | None, *, arn: str) -> Finding:
    """Return the finding on a broker queue that the settings name by its ARN."""
    if found is None:
        return stop(QUEUE, f"{arn} does not exist", remedy="correct broker_queue_arn, or create the queue")
    return ok(QUEUE, f"{arn} exists")


def topic_finding(arn: str, *, exists: bool) -> Finding:
    """Return the finding on the topic that alarms notify."""
    if exists:
        return ok(TOPIC, arn)
    return stop(TOPIC, f"{arn} does not exist", remedy="correct alarm_topic_arn: every alarm would fail to notify it")
