"""Whether what live stands on answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table
    from mypy_boto3_sqs.client import SQSClient

NOTHING = {"pk": "health", "sk": "health"}  # is never there: that the table says so is enough


@dataclass(frozen=True, slots=True)
class Health:
    """Looks at the table and at the queues, by what they are called in answers."""

    table: "Table"
    sqs: "SQSClient"
    queue_urls: Mapping[str, str]

    def troubles(self) -> dict[str, str]:
        """Return what does not answer, and AWS's code for it; nothing of it names an account or an address."""
        looks: list[tuple[str, Callable[[], object]]] = [("table", lambda: self.table.get_item(Key=NOTHING))]
        looks += [(name, self._look_at(url)) for name, url in self.queue_urls.items()]
        return dict(_failed(looks))

    def _look_at(self, url: str) -> Callable[[], object]:
        return lambda: self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])


def _failed(looks: Sequence[tuple[str, Callable[[], object]]]) -> Sequence[tuple[str, str]]:
    found = ((name, _trouble(look)) for name, look in looks)
    return [(name, trouble) for name, trouble in found if trouble]


def _trouble(look: Callable[[], object]) -> str:
    try:
        look()
    except ClientError as error:
        return error.response["Error"]["Code"]
    except BotoCoreError as error:
        return type(error).__name__
    return ""
