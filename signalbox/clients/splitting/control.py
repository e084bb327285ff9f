"""The control client of splitting."""

from datetime import timedelta

from signalbox.clients.control import REPLY_TIMEOUT, ControlClient, SqsClient
from signalbox.splitting.control.protocol import stage_of

CAPABILITY = "splitting"


def split_client(
    queues: SqsClient, *, control_queue_url: str, reply_queue_prefix: str, reply_timeout: timedelta = REPLY_TIMEOUT
) -> ControlClient:
    """Return a control client; its arguments are the outputs `SplitControlQueueUrl` and `SplitReplyQueuePrefix`."""
    return ControlClient(
        queues,
        control_queue_url,
        reply_queue_prefix,
        stage=stage_of(reply_queue_prefix),
        capability=CAPABILITY,
        reply_timeout=reply_timeout,
    )
