"""The control queue of splitting, as the control plane sends commands to itself."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from signalbox.splitting.control.commands import Reconcile, reconcile_body

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient


@dataclass(frozen=True, slots=True)
class SqsControlQueue:
    """`ControlQueue`: commands that the control plane sends to itself."""

    sqs: "SQSClient"
    control_queue_url: str

    def ask(self, command: Reconcile, *, delay: timedelta) -> None:
        """Send a reconcile command that becomes visible after `delay`, in whole seconds."""
        self.sqs.send_message(
            QueueUrl=self.control_queue_url,
            MessageBody=reconcile_body(command),
            DelaySeconds=round(delay.total_seconds()),
        )
