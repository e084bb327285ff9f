"""The doctor's rules: the verdict on each fact."""

from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.doctor.findings import Finding, Judgement, has_stop, ok, stop, unchecked, warn
from signalbox.doctor.rules import (
    ALL,
    ALL_BUT,
    DAILY,
    END_OF_SUPPORT,
    NOTICE,
    QUEUE,
    SOME,
    UNRESERVED_MINIMUM,
    CallerIdentity,
    Concurrency,
    Demand,
    QueueSources,
    Recorder,
    concurrency_finding,
    identity_finding,
    name_prefixes,
    recorder_finding,
    region_finding,
    runtime_finding,
    sources_finding,
)

DEMAND = Demand(mappings=10, polled=150, reserved=0)
RECORDER = Recorder("default", "arn:role", ALL)
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("finding", "stops"),
    [
        (ok("a", ""), False),
        (warn("a", "", remedy="b"), False),
        (unchecked("a", "", remedy="b"), False),
        (stop("a", "", remedy="b"), True),
    ],
    ids=lambda value: getattr(value, "verdict", str(value)),
)
def test_only_an_obstacle_stops_a_deployment(finding: Finding, stops):
    assert has_stop([ok("other", ""), finding]) is stops


@pytest.mark.parametrize(
    ("arn", "verdict"), [("arn:aws:iam::1:user/ann", "ok"), ("arn:aws:iam::1:root", "warn")], ids=["user", "root"]
)
def test_the_root_user_is_a_warning(arn, verdict):
    assert identity_finding(CallerIdentity("1", arn)).verdict == verdict


@pytest.mark.parametrize(("partition", "verdict"), [(None, "stop"), ("aws-cn", "stop"), ("aws", "ok")])
def test_only_the_partition_aws_is_supported(partition, verdict):
    assert region_finding("eu-west-1", partition=partition).verdict == verdict


@pytest.mark.parametrize(
    ("days", "verdict"), [(-1, "stop"), (1, "warn"), (NOTICE.days + 1, "ok")], ids=["over", "soon", "far away"]
)
def test_the_end_of_support_of_the_runtime_is_announced(days, verdict):
    ((python, end),) = END_OF_SUPPORT.items()

    found = runtime_finding(python, today=end - days * DAY, has_compiler=True)

    assert found.verdict == verdict
    assert str(end) in found.text


def test_a_machine_that_writes_no_bytecode_for_the_functions_is_a_warning():
    ((python, end),) = END_OF_SUPPORT.items()

    found = runtime_finding(python, today=end - NOTICE - DAY, has_compiler=False)

    assert found.verdict == "warn"
    assert f"uv python install {python}" in found.remedy


@pytest.mark.parametrize(
    ("limit", "unreserved", "reserved", "verdict"),
    [
        (10, 10, 0, "warn"),
        (DEMAND.polled, DEMAND.polled, 0, "ok"),
        (1000, DEMAND.polled - 1, 0, "warn"),
        (1000, 1000, 1000 - UNRESERVED_MINIMUM + 1, "stop"),
        (1000, 1000, 1000 - DEMAND.polled, "ok"),
        (1000, 1000, 1000 - UNRESERVED_MINIMUM, "warn"),
        (1000, 500, 450, "warn"),
    ],
    ids=[
        "new account",
        "enough",
        "others reserve",
        "cannot reserve",
        "enough for both",
        "just reserves",
        "perhaps its own",
    ],
)
def test_concurrency_covers_mappings_and_reservations(limit, unreserved, reserved, verdict):
    demand = replace(DEMAND, reserved=reserved)

    found = concurrency_finding(Concurrency(limit, unreserved), demand, region="eu-west-1")

    assert found.verdict == verdict
    assert ("--quota-code L-B99A9384" in found.remedy) is (verdict != "ok")


def test_a_large_demand_asks_for_more_than_the_default():
    demand = replace(DEMAND, polled=5100)

    assert "--desired-value 5200" in concurrency_finding(Concurrency(10, 10), demand, region="eu-west-1").remedy


@pytest.mark.parametrize(
    ("recorder", "records"),
    [
        (RECORDER, True),
        (replace(RECORDER, strategy=SOME, included=(QUEUE,)), True),
        (replace(RECORDER, strategy=SOME, included=("AWS::S3::Bucket",)), False),
        (replace(RECORDER, strategy=ALL_BUT, excluded=(QUEUE,)), False),
        (replace(RECORDER, strategy=ALL_BUT, excluded=("AWS::S3::Bucket",)), True),
        (replace(RECORDER, is_recording=False), False),
        (replace(RECORDER, is_paid=False), False),
    ],
    ids=["all", "named", "others", "excluded", "other excluded", "stopped", "free"],
)
def test_only_a_paid_running_recorder_of_queues_is_a_warning(recorder, records):
    assert (recorder_finding([recorder]).verdict is Judgement.WARN) is records


def test_the_price_of_recording_is_two_items_a_queue():
    assert "6,000 USD a million" in recorder_finding([RECORDER]).text


def test_daily_recording_has_another_price():
    assert "0.012 USD" in recorder_finding([replace(RECORDER, frequency=DAILY)]).text


@pytest.mark.parametrize(
    ("recorder", "group"),
    [
        (RECORDER, '"exclusionByResourceTypes":{"resourceTypes":["AWS::SQS::Queue"]}'),
        (
            replace(RECORDER, strategy=ALL_BUT, excluded=("AWS::S3::Bucket",)),
            '"exclusionByResourceTypes":{"resourceTypes":["AWS::S3::Bucket","AWS::SQS::Queue"]}',
        ),
        (replace(RECORDER, strategy=SOME, included=("AWS::S3::Bucket", QUEUE)), '"resourceTypes":["AWS::S3::Bucket"]'),
    ],
    ids=["all", "all but some", "some"],
)
def test_the_remedy_records_the_same_types_without_queues(recorder, group):
    assert group in recorder_finding([recorder]).remedy


def test_queues_without_strange_sources_are_no_risk():
    assert sources_finding([]).verdict is Judgement.OK
    assert sources_finding([QueueSources("a", is_open=False, strangers=())]).verdict is Judgement.OK


def test_an_open_queue_and_a_strange_source_are_reported():
    queues = [QueueSources("a", is_open=True, strangers=()), QueueSources("b", is_open=True, strangers=("eve",))]

    finding = sources_finding(queues)

    assert finding.verdict is Judgement.WARN
    assert finding.text.endswith(": b takes those of eve; a takes those of any queue")


def test_the_queues_of_a_stage_are_found_by_their_names():
    assert name_prefixes("box", exchanges="sr-", temporary="mirrord-", broker="offers") == (
        *("box-", "sr-x", "sr-q_", "mirrord-", "offers"),
    )
