"""The environment variables of splitting's functions; a test compares the names with the handlers."""

from collections.abc import Mapping

from stacks.history.lake import TABLE
from stacks.settings.config import Config
from stacks.shared.arns import queue_arn
from stacks.shared.function import selected

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


def environment(function: str, resources: Mapping[str, str], config: Config) -> dict[str, str]:
    """Return the environment of a function; `resources` are the variables with names of resources."""
    given = {
        **resources,
        "HISTORY_TABLE": TABLE,
        "TEMPORARY_QUEUE_ARN_PREFIX": queue_arn(config.temporary_queue_prefix),
        "SPLITTABLE_BUCKETS": ",".join(config.buckets_to_read),
        "KUBERNETES_CLUSTERS": config.clusters.variable,
    }
    return selected(given, NEEDS[function], config)
