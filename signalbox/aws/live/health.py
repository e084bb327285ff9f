"""The health check of the table and the queues that live needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.shared.dynamodb import DynamoTable

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

NOTHING = {"pk": "health", "sk": "health"}  # never exists: an answer is enough


@dataclass(frozen=True, slots=True)
class Health:
    """Checks the table and the queues; `queue_urls` has the queues by their names in the answer."""

    table: DynamoTable
    sqs: "SQSClient"
    queue_urls: Mapping[str, str]

    def problems(self) -> dict[str, str]:
        """Return AWS's error code for each resource that does not answer; codes name no account and no address."""
        checks: list[tuple[str, Callable[[], object]]] = [
            ("table", partial(self.table.get, NOTHING, is_consistent=False))
        ]
        checks += [(name, self._check(url)) for name, url in self.queue_urls.items()]
        return dict(_failed(checks))

    def _check(self, url: str) -> Callable[[], object]:
        return lambda: self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])


def _failed(checks: Sequence[tuple[str, Callable[[], object]]]) -> Sequence[tuple[str, str]]:
    found = ((name, _problem(check)) for name, check in checks)
    return [(name, problem) for name, problem in found if problem]


def _problem(check: Callable[[], object]) -> str:
    try:
        check()
    except ClientError as error:
        return error.response["Error"]["Code"]
    except BotoCoreError as error:
        return type(error).__name__
    return ""
