"""The dependencies of both functions of the exchange, created once for each function instance."""

from functools import cache
from typing import TYPE_CHECKING

from lambdas.shared import instance
from signalbox.exchange.model.names import StageNames

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table


@cache
def names() -> StageNames:
    """Return the names of the stage's resources."""
    return StageNames(instance.settings().text("STAGE"), instance.settings().text("EXCHANGE_PREFIX"))


def table() -> "Table":
    """Return the table of exchanges."""
    return instance.table("EXCHANGE_TABLE")


def url_prefix() -> str:
    """Return the URL of a queue of the stage up to its name, as the dead-letter queue's URL has it."""
    return instance.settings().text("EXCHANGE_DEAD_LETTER_QUEUE_URL").rpartition("/")[0] + "/"
