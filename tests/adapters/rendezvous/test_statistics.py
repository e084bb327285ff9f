"""Properties of the DynamoDB statistics only: several function instances, and failures that are not raised."""

import logging
from datetime import date

import boto3
import pytest
from botocore.exceptions import ClientError

from signalbox.aws.rendezvous.statistics import MOST_SEEN, SHARDS, DynamoStatistics
from signalbox.aws.shared.dynamodb import DynamoTable

DAY = date(2026, 11, 21)


def test_all_function_instances_hash_with_the_same_key(rendezvous_table) -> None:
    first, second = DynamoStatistics(rendezvous_table), DynamoStatistics(rendezvous_table)

    assert first.key(DAY) == second.key(DAY)
    assert len(first.key(DAY)) == 32


def test_the_key_and_the_hashes_of_a_day_expire(rendezvous_table) -> None:
    statistics = DynamoStatistics(rendezvous_table)
    statistics.key(DAY)
    statistics.first_seen(DAY, "hash")

    items = rendezvous_table.scan()["Items"]

    assert {int(item["expires_at"]) for item in items} == {1795309200}  # 2026-11-22 01:00 UTC


def test_an_instance_remembers_a_limited_number_of_keys(rendezvous_table) -> None:
    """A stranger can make up addresses without end."""
    statistics = DynamoStatistics(rendezvous_table, seen={(DAY, str(number)) for number in range(MOST_SEEN)})

    assert [statistics.first_seen(DAY, "k") for _ in range(2)] == [True, False]
    assert statistics.seen == {(DAY, "k")}


def test_a_key_seen_by_another_instance_is_not_new(rendezvous_table) -> None:
    DynamoStatistics(rendezvous_table).first_seen(DAY, "k")

    assert not DynamoStatistics(rendezvous_table).first_seen(DAY, "k")


def test_a_failed_counter_write_is_logged_and_not_raised(aws, caplog: pytest.LogCaptureFixture) -> None:
    statistics = DynamoStatistics(DynamoTable(boto3.client("dynamodb"), "NoSuchTable"))

    with caplog.at_level(logging.ERROR):
        statistics.add(DAY, {"a": 1})
        is_new = statistics.first_seen(DAY, "k")

    assert not is_new
    assert len(caplog.records) == 2


def test_a_service_error_other_than_a_failed_condition_is_raised(aws) -> None:
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        DynamoStatistics(DynamoTable(boto3.client("dynamodb"), "NoSuchTable")).key(DAY)


def test_the_counters_of_all_shards_and_of_versions_without_shards_add_up(rendezvous_table) -> None:
    for shard in range(SHARDS):
        DynamoStatistics(rendezvous_table, shard=shard).add(DAY, {"a": 1, f"b{shard}": 2})
    rendezvous_table.put_item(Item={"pk": f"statistics#{DAY}", "sk": "old", "n": 3})

    found = DynamoStatistics(rendezvous_table).counters(DAY)

    assert found == {"a": SHARDS, "old": 3} | {f"b{shard}": 2 for shard in range(SHARDS)}


def test_function_instances_share_their_writes_out_over_partitions(rendezvous_table) -> None:
    """DynamoDB takes 1,000 writes a second to one item, and to one partition key at first."""
    for _ in range(100):
        DynamoStatistics(rendezvous_table).add(DAY, {"poll": 1})

    partitions = {item["pk"] for item in rendezvous_table.scan()["Items"]}
    assert len(partitions) > SHARDS / 2
    assert DynamoStatistics(rendezvous_table).counters(DAY) == {"poll": 100}
