"""The environment variables of the functions of live; a test compares these names with the handlers."""

from collections.abc import Mapping

from aws_cdk import Aws

from stacks.settings.choices import VISIBILITY_PER_TIMEOUT
from stacks.settings.config import Config
from stacks.shared.arns import arn, queue_arn
from stacks.shared.function import selected

# The name of the WebSocket API's stage, the path of its URL.
WEBSOCKET_STAGE = "live"
NEEDS = {
    "connect": ("LIVE_TABLE", "EXCHANGE_TABLE", "HISTORY_STREAM", "LIVE_INBOX_URL", "LIVE_TIMERS_URL"),
    "receive": ("LIVE_INBOX_URL",),
    "session": (
        *("STAGE", "LIVE_TABLE", "EXCHANGE_TABLE", "EXCHANGE_PREFIX", "HISTORY_STREAM"),
        *("LIVE_INBOX_URL", "LIVE_OUTBOX_URL", "LIVE_TIMERS_URL", "LIVE_OVERVIEW_URL"),
        "LIVE_ORDERED_DEAD_LETTER_QUEUE_URL",
    ),
    "overview": (
        *("LIVE_TABLE", "EXCHANGE_TABLE", "RENDEZVOUS_TABLE", "SPLIT_TABLE", "HISTORY_BUCKET", "HISTORY_STREAM"),
        *("LIVE_OVERVIEW_URL", "LIVE_OUTBOX_URL", "LIVE_ORDERED_DEAD_LETTER_QUEUE_URL", "STAGE", "EXCHANGE_PREFIX"),
    ),
    "deliver": (
        *("LIVE_TABLE", "EXCHANGE_TABLE", "HISTORY_STREAM"),
        *("LIVE_INBOX_URL", "LIVE_OUTBOX_URL", "LIVE_ORDERED_DEAD_LETTER_QUEUE_URL", "LIVE_CONNECTIONS_URL"),
        "LIVE_VISIBILITY_SECONDS",
    ),
    "page": (
        *("LIVE_TABLE", "EXCHANGE_TABLE", "LIVE_INBOX_URL", "LIVE_OUTBOX_URL", "LIVE_WEBSOCKET_URL"),
        "PAGE_LISTS_REALMS",
    ),
}


def environment(function: str, resources: Mapping[str, str], *, api_id: str, config: Config) -> dict[str, str]:
    """Return the environment of a function; `resources` are the variables with names of resources."""
    given = {
        **resources,
        "LIVE_CONNECTIONS_URL": _connections_url(api_id, config),
        "LIVE_VISIBILITY_SECONDS": str(VISIBILITY_PER_TIMEOUT * config.live_timeout_seconds),
        "LIVE_WEBSOCKET_URL": _websocket_url(api_id, config),
        "PAGE_LISTS_REALMS": "yes" if config.page_lists_realms else "no",
    }
    return selected(given, NEEDS[function], config)


def connections_arn(api_id: str) -> str:
    """Return the ARN of all connections, for the permission to post to them."""
    return arn("execute-api", f"{api_id}/{WEBSOCKET_STAGE}/*/@connections/*")


def ordered_exchanges_arn(config: Config) -> str:
    """Return the ARN of the queues of all ordered exchanges, which can be realms."""
    return queue_arn(f"{config.exchange_prefix}x*.fifo")


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
