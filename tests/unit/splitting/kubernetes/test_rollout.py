"""Rollouts of workloads, by the status that the controllers write."""

import pytest

from signalbox.splitting.kubernetes.rollout import is_rolled_out, label_selector, obstacle, pause, unsuitability
from signalbox.splitting.model.target import TargetKind
from tests.unit.splitting.kubernetes.workloads import workload

DEPLOYMENT, STATEFUL_SET, ROLLOUT = TargetKind.DEPLOYMENT, TargetKind.STATEFUL_SET, TargetKind.ROLLOUT
DONE = {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
SET_DONE = {**DONE, "currentRevision": "b", "updateRevision": "b"}
HEALTHY = {**DONE, "observedGeneration": "2", "phase": "Healthy", "stableRS": "b", "currentPodHash": "b"}
LATE = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"}


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        (DEPLOYMENT, DONE, True),
        (DEPLOYMENT, {**DONE, "observedGeneration": 1}, False),
        (DEPLOYMENT, {**DONE, "updatedReplicas": 0}, False),
        (DEPLOYMENT, {**DONE, "replicas": 2}, False),
        (DEPLOYMENT, {**DONE, "availableReplicas": 0}, False),
        (DEPLOYMENT, {}, False),
        (STATEFUL_SET, SET_DONE, True),
        (STATEFUL_SET, {**SET_DONE, "currentRevision": "a"}, False),
        (STATEFUL_SET, {**SET_DONE, "availableReplicas": 0}, False),
        (ROLLOUT, HEALTHY, True),
        (ROLLOUT, {**HEALTHY, "observedGeneration": "1"}, False),
        (ROLLOUT, {**HEALTHY, "phase": "Progressing"}, False),
        (ROLLOUT, {**HEALTHY, "stableRS": "a"}, False),
    ],
)
def test_a_rollout_is_complete_by_its_status(kind, status, expected):
    assert is_rolled_out(kind, workload(status=status)) is expected


def test_a_server_that_counts_no_available_replicas_of_a_stateful_set_counts_ready_ones():
    status = {name: value for name, value in SET_DONE.items() if name != "availableReplicas"}

    assert is_rolled_out(STATEFUL_SET, workload(status={**status, "readyReplicas": 1}))


def test_a_workload_of_zero_replicas_is_rolled_out():
    found = workload(status={})
    found["spec"]["replicas"] = 0

    assert is_rolled_out(DEPLOYMENT, found)


@pytest.mark.parametrize(
    ("kind", "spec", "reason"),
    [
        (DEPLOYMENT, {"paused": True}, "is paused; resume it"),
        (ROLLOUT, {"paused": True}, "is paused; resume it"),
        (STATEFUL_SET, {"updateStrategy": {"type": "OnDelete"}}, "update strategy OnDelete"),
        (STATEFUL_SET, {"updateStrategy": {"rollingUpdate": {"partition": 1}}}, "with a partition"),
    ],
)
def test_a_workload_whose_pods_do_not_follow_its_template_is_unsuitable(kind, spec, reason):
    assert reason in (unsuitability(kind, workload(spec={"template": {}, **spec})) or "")
    assert reason in (obstacle(kind, workload(spec={"template": {}, **spec})) or "")


def test_a_rollout_with_the_template_of_another_workload_is_unsuitable():
    assert "workloadRef" in (unsuitability(ROLLOUT, {"spec": {"workloadRef": {}}}) or "")


@pytest.mark.parametrize("kind", [DEPLOYMENT, ROLLOUT, STATEFUL_SET])
def test_other_workloads_are_suitable(kind):
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}

    assert unsuitability(kind, workload()) is None
    assert unsuitability(kind, workload(spec={"template": {}, "updateStrategy": strategy})) is None


def test_a_deadline_that_is_exceeded_is_an_obstacle_to_the_newest_rollout_alone():
    status = {"conditions": [{"type": "Available", "status": "True"}, LATE]}

    assert "timed out" in (obstacle(DEPLOYMENT, workload(status={**status, "observedGeneration": 2})) or "")
    assert obstacle(DEPLOYMENT, workload(status={**status, "observedGeneration": 1})) is None


def test_a_rollout_waits_at_a_step_of_its_strategy():
    assert "promote it" in (pause(ROLLOUT, workload(status={"phase": "Paused"})) or "")
    assert pause(ROLLOUT, workload(status={"phase": "Healthy"})) is None
    assert pause(DEPLOYMENT, workload()) is None


def test_a_selector_is_written_as_a_query():
    expressions = [
        {"key": "tier", "operator": "In", "values": ["a", "b"]},
        {"key": "old", "operator": "DoesNotExist"},
        {"key": "app", "operator": "Exists"},
        {"key": "env", "operator": "NotIn", "values": ["test"]},
    ]
    found = workload(spec={"selector": {"matchLabels": {"x": "1", "app": "web"}, "matchExpressions": expressions}})

    assert label_selector(found) == "app=web,x=1,tier in (a,b),!old,app,env notin (test)"
    assert label_selector(workload(spec={"selector": {"matchExpressions": expressions[2:3]}})) == "app"
