"""Calls on an ECS service are checked on the service."""

import json

import pytest

from signalbox.local.emulator.patches.service_permissions import with_services

SERVICE = "arn:aws:ecs:us-east-1:000000000000:service/"


def resource(action: str, request: dict[str, object], *, of: str = "ecs") -> str:
    """Return the resource on which a request is checked."""
    checked = with_services(lambda *_: "the cluster")
    headers = {"x-amz-target": f"AmazonEC2ContainerServiceV20141113.{action}"}
    return checked(of, "POST", "/", headers, json.dumps(request).encode(), {}, "us-east-1", "000000000000")


@pytest.mark.parametrize(
    ("action", "request_", "expected"),
    [
        ("UpdateService", {"cluster": "demo", "service": "mailer"}, f"{SERVICE}demo/mailer"),
        ("DescribeServices", {"cluster": "demo", "services": ["mailer"]}, f"{SERVICE}demo/mailer"),
        ("DescribeServices", {"services": [f"{SERVICE}default/mailer"]}, f"{SERVICE}default/mailer"),
        ("CreateService", {"cluster": "a:cluster/demo", "serviceName": "mailer"}, f"{SERVICE}demo/mailer"),
        ("DescribeServices", {"cluster": "demo", "services": ["a", "b"]}, "the cluster"),
        ("ListTasks", {"cluster": "demo", "serviceName": "mailer"}, "the cluster"),
    ],
)
def test_a_call_on_a_service_is_checked_on_it(action, request_, expected):
    assert resource(action, request_) == expected


def test_calls_of_other_services_are_checked_as_before():
    assert resource("UpdateService", {}, of="apprunner") == "the cluster"
