"""The doctor's rules on what a stage uses and does not make."""

import pytest

from signalbox.doctor.resources import (
    AlarmTopic,
    DeniedUserActions,
    broker_queue_finding,
    catalog_finding,
    topic_finding,
    users_finding,
    version_finding,
)


@pytest.mark.parametrize(("deployed", "state"), [(None, "is not deployed"), ("0.2.0", "has 0.2.0")])
def test_the_versions_of_command_and_stage_are_named(deployed, state):
    assert version_finding("s", deployed, command="0.3.0").text == f"0.3.0 of this command; stage s {state}"


@pytest.mark.parametrize(
    ("topic", "verdict"),
    [
        (None, "stop"),
        (AlarmTopic("alias/aws/sns"), "stop"),
        (AlarmTopic("arn:aws:kms:eu-west-1:123456789012:alias/aws/sns"), "stop"),
        (AlarmTopic("arn:aws:kms:eu-west-1:123456789012:key/mine"), "ok"),
        (AlarmTopic(), "ok"),
    ],
)
def test_alarms_need_a_topic_to_which_cloudwatch_may_publish(topic, verdict):
    assert topic_finding("arn:t", topic).verdict == verdict


@pytest.mark.parametrize(("seconds", "verdict"), [(None, "stop"), (2, "stop"), (3, "ok"), (30, "warn")])
def test_an_existing_broker_queue_has_the_visibility_of_the_function(seconds, verdict):
    found = broker_queue_finding("offers", seconds, needed=3)

    assert found.verdict == verdict
    assert bool(found.remedy) is (verdict != "ok")


def test_a_catalog_that_lake_formation_governs_is_a_warning():
    assert catalog_finding("lake", is_governed=False).verdict == "ok"
    governed = catalog_finding("lake", is_governed=True)
    assert (governed.verdict, "docs/history.md" in governed.remedy) == ("warn", True)


@pytest.mark.parametrize(
    ("rights", "verdict", "said"),
    [
        (DeniedUserActions(), "ok", ""),
        (None, "warn", "--bootstrap"),
        (DeniedUserActions(denied=("iam:CreateUser",)), "warn", "iam:CreateUser"),
        (DeniedUserActions(("iam:CreateUser",), ("iam:CreateUser",)), "stop", "organization denies iam:CreateUser"),
    ],
)
def test_an_organization_without_iam_users_is_an_obstacle(rights, verdict, said):
    found = users_finding("signalbox", rights)

    assert found.verdict == verdict
    assert said in f"{found.text} {found.remedy}"
