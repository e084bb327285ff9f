"""The quotas that the settings need, against the synthesized templates."""

import sys
from tempfile import TemporaryDirectory

from aws_cdk import App

from app import build
from signalbox.doctor.bootstrap import REQUIRED_VERSION
from signalbox.doctor.programs import END_OF_SUPPORT
from stacks.settings.context import read_config
from stacks.settings.needs import needs
from stacks.shared.function import RUNTIMES
from tests.infrastructure.templates import HERMETIC, templates

SETTINGS = {
    "route_concurrency": 7,
    "live_concurrency": 13,
    "offer_concurrency": 17,
    "poll_hold_limit": 90,
    "client_concurrency": 11,
}
SETTINGS |= {"proxy_concurrency": 12, "page_concurrency": 14, "live_connect_concurrency": 15, "live_frame_limit": 160}


def test_the_mappings_of_the_templates_are_those_that_the_settings_need():
    needed = needs(read_config(SETTINGS))
    found = templates(**SETTINGS).every("AWS::Lambda::EventSourceMapping").values()

    maxima = [mapping["Properties"]["ScalingConfig"]["MaximumConcurrency"] for mapping in found]
    assert (needed.mappings, needed.polled) == (len(maxima), sum(maxima))


def test_held_polls_count_where_they_are_not_reserved():
    assert needs(read_config(SETTINGS)).held_polls == 0
    assert needs(read_config({**SETTINGS, "reserve_concurrency": False})).held_polls == 90


def test_the_reserved_executions_are_those_of_the_templates():
    functions = templates(**SETTINGS).every("AWS::Lambda::Function").values()

    reserved = sum(function["Properties"].get("ReservedConcurrentExecutions", 0) for function in functions)
    assert needs(read_config(SETTINGS)).reserved == reserved > 0


def test_the_requests_are_those_that_the_throttles_let_in():
    stages = [one["Properties"] for one in templates(**SETTINGS).every("AWS::ApiGatewayV2::Stage").values()]

    limits = [
        limit for one in stages for limit in (one["DefaultRouteSettings"], *one.get("RouteSettings", {}).values())
    ]
    assert needs(read_config(SETTINGS)).requests_per_second == sum(limit["ThrottlingRateLimit"] for limit in limits)


def test_the_numbers_of_resources_are_rounded_up(stage):
    needed = needs(read_config({}))

    for kind, number in (
        ("AWS::IAM::Role", needed.roles),
        ("AWS::DynamoDB::Table", needed.tables),
        ("AWS::Scheduler::Schedule", needed.schedules),
    ):
        assert 0.5 * number < len(stage.every(kind)) <= number, kind


def test_the_runtimes_with_an_end_of_support_are_those_of_the_functions(stage):
    major, minor = sys.version_info[:2]
    runtimes = {function["Properties"]["Runtime"] for function in stage.every("AWS::Lambda::Function").values()}

    assert set(END_OF_SUPPORT) == set(RUNTIMES)
    assert runtimes == {f"python{major}.{minor}"}


def test_the_stacks_require_the_bootstrap_that_the_doctor_looks_for():
    with TemporaryDirectory() as folder:
        app = App(outdir=folder, context=HERMETIC, builtin_cloud_formation_validation=False)
        build(app)
        stacks = app.synth().stacks

    assert {stack.requires_bootstrap_stack_version for stack in stacks} == {REQUIRED_VERSION}
