"""Control queues with their event source mappings to the control functions, and reply queues."""

from aws_cdk import Duration
from aws_cdk import aws_kms as kms
from constructs import Construct

from stacks.shared.function import Function
from stacks.shared.queue import Queue

# A command makes a few calls to AWS; longer work continues in a following command.
TIMEOUT_SECONDS = 30
# A command of a killed function is received again after this time; its client waits one minute for a reply.
VISIBILITY = Duration.seconds(40)
# One command an invocation: a slow command delays no other; a lock serializes the work on one target.
BATCH = 1
CONCURRENCY = 10
# No client waits longer for a reply, and the schedule finishes all work without commands.
RETENTION = Duration.hours(1)
# As in `signalbox/control/protocol.py`, which has the reasons.
REPLY_VISIBILITY = Duration.seconds(2)
REPLY_RETENTION = Duration.seconds(60)


def command_queue(scope: Construct, *, queue_name: str, key: kms.IKey) -> Queue:
    """Create a control queue under a fixed name, which policies of users contain."""
    return Queue(scope, "Commands", queue_name=queue_name, key=key, visibility=VISIBILITY, retention=RETENTION)


def reply_queue(scope: Construct, *, queue_name: str, key: kms.IKey) -> Queue:
    """Create a reply queue under a fixed name. It has no dead letters: an unread reply is worthless."""
    visibility, retention = REPLY_VISIBILITY, REPLY_RETENTION
    return Queue(scope, "Replies", queue_name=queue_name, key=key, visibility=visibility, retention=retention)


def add_command_mapping(function: Function, queue: Queue) -> None:
    """Create the event source mapping from a control queue to a function."""
    function.read(queue, "Commands", batch=BATCH, concurrency=CONCURRENCY)
