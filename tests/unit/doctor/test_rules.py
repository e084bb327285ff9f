"""The doctor's rules: the verdict on each fact."""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from signalbox.doctor.account import Identity, Region, identity_finding, partition_finding, region_finding
from signalbox.doctor.bootstrap import REQUIRED_VERSION, assets_finding, bootstrap_finding
from signalbox.doctor.clusters import EksCluster, cluster_finding
from signalbox.doctor.findings import Finding, Verdict, has_stop, ok, stop, unchecked, warn
from signalbox.doctor.programs import END_OF_SUPPORT, NOTICE, node_finding, python_finding, runtime_finding
from signalbox.doctor.quotas import (
    UNRESERVED_MINIMUM,
    Concurrency,
    Demand,
    Places,
    concurrency_finding,
    requests_finding,
    roles_finding,
    schedules_finding,
    tables_finding,
    users_finding,
)
from signalbox.doctor.recorder import ALL, ALL_BUT, DAILY, QUEUE, SOME, Recorder, recorder_finding
from signalbox.doctor.resources import NamedQueue, imported_queue_finding, queue_finding, topic_finding

REGIONS = [Region("eu-west-1", "opt-in-not-required"), Region("af-south-1", "not-opted-in")]
DEMAND = Demand(
    mappings=10, polled=100, held_polls=50, reserved=0, requests_per_second=5000, schedules=16, roles=43, tables=5
)
RECORDER = Recorder("default", "arn:role", ALL)
DAY = timedelta(days=1)
KEY = "arn:aws:kms:eu-west-1:1:key/1"


def test_a_finding_has_a_document_with_all_fields():
    finding = warn("a", "b", remedy="c")

    assert finding.to_document() == {"check": "a", "verdict": "warn", "text": "b", "remedy": "c"}


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
    assert identity_finding(Identity("1", arn)).verdict == verdict


@pytest.mark.parametrize(("partition", "verdict"), [(None, "stop"), ("aws-cn", "stop"), ("aws", None)])
def test_only_the_partition_aws_is_supported(partition, verdict):
    found = partition_finding("eu-west-1", partition=partition)

    assert (found and found.verdict) == verdict


@pytest.mark.parametrize(
    ("region", "regions", "verdict", "remedy"),
    [
        ("eu-west-1", REGIONS, "ok", ""),
        ("af-south-1", REGIONS, "stop", "enable it"),
        ("eu-wst-1", REGIONS, "stop", "eu-west-1"),
        ("eu-wst-1", [], "stop", "set AWS_REGION"),
    ],
    ids=["enabled", "not enabled", "unknown", "none known"],
)
def test_a_region_must_exist_and_be_enabled(region, regions, verdict, remedy):
    found = region_finding(region, regions=regions)

    assert found.verdict == verdict
    assert remedy in found.remedy


@pytest.mark.parametrize(
    ("days", "verdict"), [(-1, "stop"), (1, "warn"), (NOTICE.days + 1, "ok")], ids=["over", "soon", "far away"]
)
def test_the_end_of_support_of_a_runtime_is_announced(days, verdict):
    today = END_OF_SUPPORT[3, 12] - days * DAY

    found = runtime_finding((3, 12), today=today)

    assert found is not None
    assert found.verdict == verdict
    assert str(END_OF_SUPPORT[3, 12]) in found.text


def test_a_python_without_a_runtime_is_an_obstacle():
    assert python_finding((3, 10)).verdict is Verdict.STOP
    assert python_finding((3, 13)).verdict is Verdict.OK
    assert runtime_finding((3, 10), today=date(2026, 1, 1)) is None


@pytest.mark.parametrize(("version", "verdict"), [(None, "stop"), ("20.1.0", "stop"), ("22.0.0", "ok")])
def test_the_cdk_needs_a_supported_node(version, verdict):
    assert node_finding(version).verdict == verdict


@pytest.mark.parametrize(
    ("version", "is_requested", "verdict"),
    [
        (None, False, "stop"),
        (REQUIRED_VERSION - 1, False, "stop"),
        (REQUIRED_VERSION, False, "ok"),
        (None, True, "ok"),
    ],
)
def test_the_bootstrap_must_exist_and_be_new_enough(version, is_requested, verdict):
    assert bootstrap_finding(version, is_requested=is_requested).verdict == verdict


@pytest.mark.parametrize(
    ("key", "known", "verdict"),
    [
        (None, None, "ok"),
        ("arn:aws:kms:eu-west-1:1:alias/aws/s3", None, "ok"),
        (KEY, None, "warn"),
        (KEY, "arn:aws:kms:eu-west-1:1:key/2", "warn"),
        (KEY, KEY, "ok"),
        ("1", KEY, "ok"),
    ],
)
def test_a_customer_key_of_the_assets_bucket_must_be_in_the_settings(key, known, verdict):
    found = assets_finding(key, exists=True, known_key=known)

    assert found is not None
    assert found.verdict == verdict


def test_a_missing_assets_bucket_is_the_bootstraps_matter():
    assert assets_finding(None, exists=False, known_key=None) is None


@pytest.mark.parametrize(
    ("limit", "unreserved", "reserved", "verdict"),
    [
        (10, 10, 0, "stop"),
        (DEMAND.held_polls, DEMAND.held_polls, 0, "stop"),
        (DEMAND.held_polls + 1, DEMAND.held_polls + 1, 0, "warn"),
        (DEMAND.most, DEMAND.most, 0, "ok"),
        (1000, DEMAND.most - 1, 0, "warn"),
        (1000, 1000, 1000 - UNRESERVED_MINIMUM + 1, "stop"),
        (1000, 1000, 1000 - DEMAND.most, "ok"),
        (1000, 1000, 1000 - UNRESERVED_MINIMUM, "warn"),
        (1000, 500, 450, "warn"),
    ],
    ids=[
        "new account",
        "held polls take all",
        "idle only",
        "enough",
        "others reserve",
        "cannot reserve",
        "enough for both",
        "just reserves",
        "perhaps its own",
    ],
)
def test_concurrency_covers_held_polls_mappings_and_reservations(limit, unreserved, reserved, verdict):
    demand = replace(DEMAND, reserved=reserved)

    found = concurrency_finding(Concurrency(limit, unreserved), demand, region="eu-west-1")

    assert found.verdict == verdict
    assert ("--quota-code L-B99A9384" in found.remedy) is (verdict != "ok")


def test_a_large_demand_asks_for_more_than_the_default():
    demand = replace(DEMAND, held_polls=5000)

    assert "--desired-value 5200" in concurrency_finding(Concurrency(10, 10), demand, region="eu-west-1").remedy


@pytest.mark.parametrize(("quota", "verdict"), [(2500, "warn"), (5000, "warn"), (10_000, "ok")])
def test_the_accounts_requests_exceed_those_of_one_api(quota, verdict):
    assert requests_finding(quota, DEMAND, region="eu-west-1").verdict == verdict


@pytest.mark.parametrize(("used", "verdict"), [(100, "stop"), (51, "warn"), (50, "ok")])
def test_iam_users_need_free_places(used, verdict):
    assert users_finding(Places(used, 100)).verdict == verdict


@pytest.mark.parametrize(("free", "verdict"), [(42, "warn"), (43, "ok")])
def test_a_new_stage_needs_places_for_its_roles(free, verdict):
    assert roles_finding(Places(1000 - free, 1000), DEMAND).verdict == verdict


@pytest.mark.parametrize(("free", "verdict"), [(4, "warn"), (5, "ok")])
def test_a_new_stage_needs_places_for_its_tables(free, verdict):
    assert tables_finding(Places(2500 - free, 2500), DEMAND, region="eu-west-1").verdict == verdict


@pytest.mark.parametrize(("groups", "verdict"), [(500, "warn"), (499, "ok")])
def test_a_new_stage_needs_a_group_of_schedules(groups, verdict):
    assert schedules_finding(groups, DEMAND).verdict == verdict


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
    assert (recorder_finding([recorder]).verdict is Verdict.WARN) is records


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


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (None, "ok"),
        (NamedQueue("q", "signalbox"), "ok"),
        (NamedQueue("q", "other"), "stop"),
        (NamedQueue("q", None), "stop"),
    ],
    ids=["free", "own", "another stage's", "a stranger's"],
)
def test_the_name_of_the_broker_queue_is_free_or_the_stages_own(found, verdict):
    assert queue_finding(found, name="q", stage="signalbox").verdict == verdict


@pytest.mark.parametrize(("found", "verdict"), [(None, "stop"), (NamedQueue("q", None), "ok")])
def test_an_imported_queue_must_exist(found, verdict):
    assert imported_queue_finding(found, arn="arn:q").verdict == verdict


@pytest.mark.parametrize(("exists", "verdict"), [(False, "stop"), (True, "ok")])
def test_the_topic_of_alarms_must_exist(exists, verdict):
    assert topic_finding("arn:t", exists=exists).verdict == verdict


@pytest.mark.parametrize(
    ("cluster", "verdict", "said"),
    [
        (EksCluster("API", is_public=True, addresses=("0.0.0.0/0",)), "ok", "can be entered"),
        (EksCluster("API_AND_CONFIG_MAP", is_public=True, addresses=("0.0.0.0/0",)), "ok", "can be entered"),
        (
            EksCluster("CONFIG_MAP", is_public=True, addresses=("0.0.0.0/0",)),
            "stop",
            "authenticationMode=API_AND_CONFIG_MAP",
        ),
        (EksCluster("API", is_public=False, addresses=()), "stop", "private endpoint"),
        (EksCluster("API", is_public=True, addresses=("192.0.2.0/24",)), "warn", "192.0.2.0/24 only"),
        (None, "stop", "prod does not exist"),
    ],
)
def test_a_cluster_of_eks_can_be_entered_and_reached(cluster, verdict, said):
    finding = cluster_finding("prod", cluster)

    assert finding.verdict == verdict
    assert said in f"{finding.text} {finding.remedy}"
