"""The history lake: a Firehose stream that writes events as hourly Parquet files, and the Glue table over them."""

from aws_cdk import Aws, Duration, RemovalPolicy, Size
from aws_cdk import aws_athena as athena
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesisfirehose as firehose
from aws_cdk import aws_s3 as s3
from constructs import Construct

from stacks.settings.config import Config
from stacks.shared.alarms import alarm
from stacks.shared.logs import LogGroup
from stacks.state_stack import ERROR_PREFIX, RAW_PREFIX, State

TABLE = "events_raw"
# The fields of signalbox/history/event.py with Hive's types; a test compares the two.
COLUMNS = {
    "version": "int",
    "event_id": "string",
    "occurred_at": "timestamp",
    "capability": "string",
    "kind": "string",
    "outcome": "string",
    "reason": "string",
    "message_id": "string",
    "topic": "string",
    "sequence": "bigint",
    "source": "string",
    "destination": "string",
    "size_bytes": "bigint",
    "latency_ms": "bigint",
    "attempt": "int",
    "labels": "map<string,string>",
}
PARTITIONS = {"dt": "string", "hour": "string"}
# AWS's advice for the age of the oldest record in Firehose. The success of writes would not do: without the schema or
# the key, Firehose begins none.
# https://docs.aws.amazon.com/firehose/latest/dev/firehose-cloudwatch-metrics-best-practices.html
LATE = Duration.minutes(15)


class HistoryLake(Construct):
    """The delivery stream for `HistoryEvent` records, its table and alarms, in the database of the state stack."""

    def __init__(self, scope: Construct, name: str, *, state: State, config: Config) -> None:
        super().__init__(scope, name)
        self.bucket, self.key = state.history_bucket, state.key
        self.database_name = config.history_database
        self.table = _table(self, self.database_name, bucket=self.bucket)
        # With the database's name. A query names its place of results, for which each of the two readers has rights.
        athena.CfnWorkGroup(
            self,
            "WorkGroup",
            name=self.database_name,
            # Its history of queries goes with it; without this, Athena refuses to delete it.
            recursive_delete_option=True,
            work_group_configuration=athena.CfnWorkGroup.WorkGroupConfigurationProperty(
                enforce_work_group_configuration=False, publish_cloud_watch_metrics_enabled=False
            ),
        )
        self.delivery_role = iam.Role(
            self, "DeliveryRole", assumed_by=iam.ServicePrincipal("firehose.amazonaws.com", conditions=_own_account())
        )
        # `signalbox history query` assumes it: the permissions of its caller are usually those of an administrator.
        self.reader_role = iam.Role(self, "ReaderRole", assumed_by=iam.AccountRootPrincipal())
        self.delivery_logs = LogGroup(self, "DeliveryLogs", key=self.key, config=config)
        self.stream = self._stream(config)
        _alarms(self, self.stream, config=config)

    def _stream(self, config: Config) -> firehose.DeliveryStream:
        # The construct would add s3:Get*, s3:List* and more; stacks/grants/history.py lists the actions instead.
        role = self.delivery_role.without_policy_updates()
        destination = firehose.S3Bucket(
            self.bucket,
            role=role,
            data_format_conversion=_parquet(self.table),
            data_output_prefix=f"{RAW_PREFIX}dt=!{{timestamp:yyyy-MM-dd}}/hour=!{{timestamp:HH}}/",
            error_output_prefix=f"{ERROR_PREFIX}!{{firehose:error-output-type}}/dt=!{{timestamp:yyyy-MM-dd}}/",
            # 64 MiB is the minimum with format conversion; the interval limits the delay.
            buffering_size=Size.mebibytes(64),
            buffering_interval=Duration.minutes(1),
            encryption_key=self.key,
            logging_config=firehose.EnableLogging(self.delivery_logs),
        )
        stream = firehose.DeliveryStream(
            self,
            "Events",
            delivery_stream_name=config.history_stream,
            destination=destination,
            encryption=firehose.StreamEncryption.customer_managed_key(self.key),
            role=role,
        )
        stream.node.add_dependency(self.delivery_role)
        # CDK retains the log stream, although its group is deleted with the stack.
        self.delivery_logs.node.find_child("S3Destination").apply_removal_policy(RemovalPolicy.DESTROY)  # type: ignore[attr-defined]  # a log stream
        return stream


def _own_account() -> dict[str, dict[str, str]]:
    # AWS documents Firehose's trust policy without conditions: a required key that Firehose does not send would
    # prevent the stream. https://docs.aws.amazon.com/firehose/latest/dev/controlling-access.html
    return {"StringEqualsIfExists": {"aws:SourceAccount": Aws.ACCOUNT_ID}}


def _parquet(table: glue.CfnTable) -> firehose.DataFormatConversionProps:
    return firehose.DataFormatConversionProps(
        schema_configuration=firehose.SchemaConfiguration.from_cfn_table(table),
        input_format=firehose.InputFormat.OPENX_JSON,
        output_format=firehose.ParquetOutputFormat(compression=firehose.ParquetCompression.SNAPPY),
    )


def _table(scope: Construct, database_name: str, *, bucket: s3.IBucket) -> glue.CfnTable:
    location = f"s3://{bucket.bucket_name}/{RAW_PREFIX}"
    return glue.CfnTable(
        scope,
        "RawEvents",
        catalog_id=Aws.ACCOUNT_ID,
        database_name=database_name,
        table_input=glue.CfnTable.TableInputProperty(
            name=TABLE,
            table_type="EXTERNAL_TABLE",
            parameters=_projection(location),
            partition_keys=_columns(PARTITIONS),
            storage_descriptor=_storage(location),
        ),
    )


def _storage(location: str) -> glue.CfnTable.StorageDescriptorProperty:
    return glue.CfnTable.StorageDescriptorProperty(
        columns=_columns(COLUMNS),
        location=location,
        input_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        output_format="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        serde_info=glue.CfnTable.SerdeInfoProperty(
            serialization_library="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
        ),
    )


def _columns(columns: dict[str, str]) -> list[glue.CfnTable.ColumnProperty]:
    return [glue.CfnTable.ColumnProperty(name=name, type=kind) for name, kind in columns.items()]


def _projection(location: str) -> dict[str, str]:
    # Partition projection: Athena derives the partitions, so new hours need no registration.
    return {
        "classification": "parquet",
        "projection.enabled": "true",
        "projection.dt.type": "date",
        "projection.dt.format": "yyyy-MM-dd",
        "projection.dt.range": "2026-01-01,NOW",
        "projection.hour.type": "integer",
        "projection.hour.range": "0,23",
        "projection.hour.digits": "2",
        "storage.location.template": f"{location}dt=${{dt}}/hour=${{hour}}/",
    }


def _alarms(scope: Construct, stream: firehose.DeliveryStream, *, config: Config) -> None:
    period = Duration.minutes(5)
    alarm(
        scope,
        "DeliveryFailing",
        metric=stream.metric("DeliveryToS3.DataFreshness", statistic="Maximum", period=period),
        threshold=LATE.to_seconds(),
        description="History events do not reach the bucket.",
        config=config,
    )
    alarm(
        scope,
        "ConversionFailing",
        metric=stream.metric("FailedConversion.Records", statistic="Sum", period=period),
        description="History events do not match the table's schema; they are under errors/ in the bucket.",
        config=config,
    )
