"""The environment variables of splitting's functions; a test compares the names with the handlers."""

from dataclasses import dataclass

from stacks.history.lake import TABLE, HistoryLake
from stacks.settings.config import Config
from stacks.shared.arns import queue_arn
from stacks.state_stack import AUDIT_PREFIX

COMMON = (
    "STAGE",
    "SPLIT_TABLE",
    "HISTORY_STREAM",
    "SPLIT_DEAD_LETTER_QUEUE_URL",
    "SPLIT_TIMEOUT_SECONDS",
    "SPLITTABLE_BUCKETS",
    "KEPT_BUCKET",
)
NEEDS = {
    "split": COMMON,
    "control": (
        *COMMON,
        "CONTROL_QUEUE_URL",
        "SPLIT_FUNCTION_ARN",
        "SPLIT_CONCURRENCY",
        "TEMPORARY_QUEUE_PREFIX",
        "TEMPORARY_QUEUE_ARN_PREFIX",
        "SPLIT_EMPTY_SECONDS",
        "SPLIT_PARAMETER_SECONDS",
        "SPLIT_HEARTBEAT_SECONDS",
        "HISTORY_DATABASE",
        "HISTORY_TABLE",
        "QUERY_RESULTS",
        "KUBERNETES_CLUSTERS",
    ),
}
POWERTOOLS = {"POWERTOOLS_SERVICE_NAME": "splitting", "POWERTOOLS_METRICS_NAMESPACE": "Signalbox"}


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources that both functions use."""

    table_name: str
    lake: HistoryLake
    control_queue_url: str
    dead_letter_queue_url: str


def split_environment(resources: Resources, config: Config) -> dict[str, str]:
    """Return the environment of the function `split`."""
    return _chosen("split", _everything(resources, config))


def control_environment(resources: Resources, config: Config, *, split_arn: str) -> dict[str, str]:
    """Return the environment of the function `control`."""
    return _chosen("control", _everything(resources, config) | {"SPLIT_FUNCTION_ARN": split_arn})


def _chosen(function: str, everything: dict[str, str]) -> dict[str, str]:
    return {name: everything[name] for name in NEEDS[function]} | POWERTOOLS


def _everything(resources: Resources, config: Config) -> dict[str, str]:
    return {
        "STAGE": config.stage,
        "SPLIT_TABLE": resources.table_name,
        "HISTORY_STREAM": resources.lake.stream.delivery_stream_name,
        "HISTORY_DATABASE": resources.lake.database_name,
        "HISTORY_TABLE": TABLE,
        "QUERY_RESULTS": f"s3://{resources.lake.bucket.bucket_name}/{AUDIT_PREFIX}",
        "KEPT_BUCKET": resources.lake.bucket.bucket_name,
        "CONTROL_QUEUE_URL": resources.control_queue_url,
        "SPLIT_DEAD_LETTER_QUEUE_URL": resources.dead_letter_queue_url,
        "TEMPORARY_QUEUE_PREFIX": config.temporary_queue_prefix,
        "TEMPORARY_QUEUE_ARN_PREFIX": queue_arn(config.temporary_queue_prefix),
        "SPLITTABLE_BUCKETS": ",".join(config.buckets_to_read),
        "SPLIT_TIMEOUT_SECONDS": str(config.split_timeout_seconds),
        "SPLIT_CONCURRENCY": str(config.split_concurrency),
        "SPLIT_EMPTY_SECONDS": str(config.split_empty_seconds),
        "SPLIT_PARAMETER_SECONDS": str(config.split_parameter_seconds),
        "SPLIT_HEARTBEAT_SECONDS": str(config.split_heartbeat_seconds),
        "KUBERNETES_CLUSTERS": config.clusters.variable,
    }
