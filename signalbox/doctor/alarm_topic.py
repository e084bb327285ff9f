"""The topic that alarms notify: CloudWatch accepts one that does not exist."""

from signalbox.doctor.findings import Finding, ok, stop

TOPIC = "alarm topic"


def topic_finding(arn: str, *, exists: bool) -> Finding:
    """Return the finding on the topic that alarms notify."""
    if exists:
        return ok(TOPIC, arn)
    return stop(TOPIC, f"{arn} does not exist", remedy="correct alarm_topic_arn: every alarm would fail to notify it")
