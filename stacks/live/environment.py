"""The environment variables of the functions of live; a test compares these names with the handlers."""

from dataclasses import dataclass

from aws_cdk import Aws

from stacks.settings.config import Config
from stacks.shared.arns import arn, queue_arn

# The name of the WebSocket API's stage, the path of its URL.
WEBSOCKET_STAGE = "live"
NEEDS = {
    "connect": ("LIVE_TABLE", "EXCHANGE_TABLE", "HISTORY_STREAM", "LIVE_INBOX_URL", "LIVE_TIMERS_URL"),
    "receive": ("LIVE_INBOX_URL",),
    "session": (
        *("STAGE", "LIVE_TABLE", "EXCHANGE_TABLE", "EXCHANGE_PREFIX", "HISTORY_STREAM", "LIVE_PEPPER_ARN"),
        *("LIVE_INBOX_URL", "LIVE_OUTBOX_URL", "LIVE_TIMERS_URL", "LIVE_OVERVIEW_URL"),
        *("LIVE_DEAD_LETTER_QUEUE_URL", "LIVE_ORDERED_DEAD_LETTER_QUEUE_URL"),
    ),
    "overview": (
        *("LIVE_TABLE", "EXCHANGE_TABLE", "RENDEZVOUS_TABLE", "SPLIT_TABLE", "HISTORY_BUCKET", "HISTORY_STREAM"),
        *("LIVE_OUTBOX_URL", "LIVE_ORDERED_DEAD_LETTER_QUEUE_URL", "STAGE", "EXCHANGE_PREFIX"),
    ),
    "deliver": (
        *("LIVE_TABLE", "EXCHANGE_TABLE", "HISTORY_STREAM"),
        *("LIVE_INBOX_URL", "LIVE_OUTBOX_URL", "LIVE_ORDERED_DEAD_LETTER_QUEUE_URL", "LIVE_CONNECTIONS_URL"),
    ),
    "page": (
        *("LIVE_TABLE", "EXCHANGE_TABLE", "LIVE_INBOX_URL", "LIVE_OUTBOX_URL", "LIVE_WEBSOCKET_URL"),
        "PAGE_LISTS_REALMS",
    ),
}
POWERTOOLS = {"POWERTOOLS_SERVICE_NAME": "live", "POWERTOOLS_METRICS_NAMESPACE": "Signalbox"}


@dataclass(frozen=True, slots=True)
class Resources:
    """The names and URLs of the resources that the functions use."""

    table_name: str
    exchange_table_name: str
    rendezvous_table_name: str
    split_table_name: str
    history_bucket_name: str
    stream_name: str
    pepper_arn: str
    inbox_url: str
    outbox_url: str
    timers_url: str
    overview_url: str
    dead_letter_queue_url: str
    ordered_dead_letter_queue_url: str
    api_id: str


def environment(function: str, resources: Resources, config: Config) -> dict[str, str]:
    """Return the environment variables of a function."""
    everything = _everything(resources, config)
    return {name: everything[name] for name in NEEDS[function]} | POWERTOOLS


def connections_arn(api_id: str) -> str:
    """Return the ARN of all connections, for the permission to post to them."""
    return arn("execute-api", f"{api_id}/{WEBSOCKET_STAGE}/*/@connections/*")


def ordered_exchanges_arn(config: Config) -> str:
    """Return the ARN of the queues of all ordered exchanges, which can be realms."""
    return queue_arn(f"{config.exchange_prefix}x*.fifo")


def _everything(resources: Resources, config: Config) -> dict[str, str]:
    return {
        "STAGE": config.stage,
        "LIVE_TABLE": resources.table_name,
        "EXCHANGE_TABLE": resources.exchange_table_name,
        "RENDEZVOUS_TABLE": resources.rendezvous_table_name,
        "SPLIT_TABLE": resources.split_table_name,
        "HISTORY_BUCKET": resources.history_bucket_name,
        "EXCHANGE_PREFIX": config.exchange_prefix,
        "HISTORY_STREAM": resources.stream_name,
        "LIVE_PEPPER_ARN": resources.pepper_arn,
        "LIVE_INBOX_URL": resources.inbox_url,
        "LIVE_OUTBOX_URL": resources.outbox_url,
        "LIVE_TIMERS_URL": resources.timers_url,
        "LIVE_OVERVIEW_URL": resources.overview_url,
        "LIVE_DEAD_LETTER_QUEUE_URL": resources.dead_letter_queue_url,
        "LIVE_ORDERED_DEAD_LETTER_QUEUE_URL": resources.ordered_dead_letter_queue_url,
        "LIVE_CONNECTIONS_URL": _connections_url(resources.api_id, config),
        "LIVE_WEBSOCKET_URL": _websocket_url(resources.api_id, config),
        "PAGE_LISTS_REALMS": "yes" if config.page_lists_realms else "no",
    }


def _connections_url(api_id: str, config: Config) -> str:
    """Return the URL for posting to connections; on the local stage, whose port is not known yet, only its path."""
    if config.local:
        return f"/_aws/execute-api/{api_id}/{WEBSOCKET_STAGE}"
    return f"https://{api_id}.execute-api.{Aws.REGION}.{Aws.URL_SUFFIX}/{WEBSOCKET_STAGE}"


def _websocket_url(api_id: str, config: Config) -> str:
    """Return the URL that clients connect to; on the local stage only its path, on the host of the page."""
    if config.local:
        return "/live-ws"
    return f"wss://{api_id}.execute-api.{Aws.REGION}.{Aws.URL_SUFFIX}/{WEBSOCKET_STAGE}"
