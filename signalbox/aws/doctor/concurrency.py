"""The concurrent executions of Lambda in the account."""

from typing import TYPE_CHECKING

from signalbox.aws.doctor.calls import PATIENCE, call
from signalbox.doctor.concurrency import Concurrency

if TYPE_CHECKING:
    import boto3


def concurrency(session: "boto3.Session") -> Concurrency:
    """Return Lambda's concurrent executions. Raises the errors of `call`."""
    with call("lambda:GetAccountSettings"):
        limit = session.client("lambda", config=PATIENCE).get_account_settings()["AccountLimit"]
    return Concurrency(limit["ConcurrentExecutions"], limit["UnreservedConcurrentExecutions"])
