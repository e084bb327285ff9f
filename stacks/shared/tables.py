"""The DynamoDB tables: on demand, encrypted with the stage's key, with point-in-time recovery and TTL."""

from collections.abc import Sequence

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from constructs import Construct

TEXT = dynamodb.AttributeType.STRING
NUMBER = dynamodb.AttributeType.NUMBER
BY_EXPIRY = "by_expiry"
BY_KIND = "by_kind"
# Indexes project their keys only.
LISTED_LEASE = ("queue_url",)
# Offers and answers contain addresses and exist for minutes: one day of recovery is enough.
RECOVERY_DAYS = 1


def rendezvous_table(scope: Construct, *, key: kms.IKey, removal: RemovalPolicy) -> dynamodb.Table:
    """Create the table of offers, paces of proxies and counters; each pool is a partition."""
    return _table(scope, "Rendezvous", partition="pk", sort="sk", key=key, removal=removal)


def lease_table(scope: Construct, *, key: kms.IKey, removal: RemovalPolicy) -> dynamodb.Table:
    """Create the table of leases; its index lists overdue leases without a scan."""
    table = _table(scope, "Leases", partition="queue_name", sort=None, key=key, removal=removal)
    _index(table, BY_EXPIRY, partition="capability", sort="due_at", listed=LISTED_LEASE)
    return table


def split_table(scope: Construct, *, key: kms.IKey, removal: RemovalPolicy) -> dynamodb.Table:
    """Create the table of splits and registries; its index lists all items of a kind."""
    return _table_of_kinds(scope, "Splits", key=key, removal=removal)


def exchange_table(scope: Construct, *, key: kms.IKey, removal: RemovalPolicy) -> dynamodb.Table:
    """Create the table of exchanges, queues, bindings and users; its index lists all items of a kind."""
    return _table_of_kinds(scope, "Exchanges", key=key, removal=removal)


def live_table(scope: Construct, *, key: kms.IKey, removal: RemovalPolicy) -> dynamodb.Table:
    """Create the table of sessions, grants, secrets, subscriptions and topics; each key identifies its kind."""
    return _table(scope, "Live", partition="pk", sort="sk", key=key, removal=removal)


def _table_of_kinds(scope: Construct, name: str, *, key: kms.IKey, removal: RemovalPolicy) -> dynamodb.Table:
    table = _table(scope, name, partition="pk", sort="sk", key=key, removal=removal)
    table.add_global_secondary_index(
        index_name=BY_KIND,
        partition_key=dynamodb.Attribute(name="kind", type=TEXT),
        sort_key=dynamodb.Attribute(name="pk", type=TEXT),
        projection_type=dynamodb.ProjectionType.ALL,
    )
    return table


def _index(table: dynamodb.Table, name: str, *, partition: str, sort: str, listed: Sequence[str]) -> None:
    table.add_global_secondary_index(
        index_name=name,
        partition_key=dynamodb.Attribute(name=partition, type=TEXT),
        sort_key=dynamodb.Attribute(name=sort, type=NUMBER),
        projection_type=dynamodb.ProjectionType.INCLUDE,
        non_key_attributes=list(listed),
    )


def _table(
    scope: Construct, name: str, *, partition: str, sort: str | None, key: kms.IKey, removal: RemovalPolicy
) -> dynamodb.Table:
    return dynamodb.Table(
        scope,
        name,
        partition_key=dynamodb.Attribute(name=partition, type=TEXT),
        sort_key=dynamodb.Attribute(name=sort, type=TEXT) if sort else None,
        billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
        encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED,
        encryption_key=key,
        point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
            point_in_time_recovery_enabled=True, recovery_period_in_days=RECOVERY_DAYS
        ),
        time_to_live_attribute="expires_at",
        deletion_protection=removal == RemovalPolicy.RETAIN,
        removal_policy=removal,
    )
