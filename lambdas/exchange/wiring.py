"""The dependencies of both functions of the exchange, created once for each function instance."""

from functools import cache

from lambdas.shared import instance
from lambdas.shared.threads import parallel_map
from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.aws.live.grants import DynamoGrants, DynamoGroups
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.exchange.model.denies import DenyReader, NoDenies
from signalbox.exchange.model.names import StageNames
from signalbox.live.admin.denies import StoredDenies


@cache
def names() -> StageNames:
    """Return the names of the stage's resources."""
    return StageNames(instance.settings().text("STAGE"), instance.settings().text("EXCHANGE_PREFIX"))


def table() -> DynamoTable:
    """Return the table of exchanges."""
    return instance.table("EXCHANGE_TABLE")


def has_live() -> bool:
    """Return whether the stage has live; without it no exchange is a realm."""
    return instance.settings().has("LIVE_TABLE")


def stored_denies() -> DenyReader:
    """Return the denies of users in realms, which are read at each call."""
    if not has_live():
        return NoDenies()
    live = instance.table("LIVE_TABLE")
    return StoredDenies(DynamoUsers(table()), DynamoGrants(live), DynamoGroups(live), parallel_map)


def url_prefix() -> str:
    """Return the URL of a queue of the stage up to its name, as the dead-letter queue's URL has it."""
    return instance.settings().text("EXCHANGE_DEAD_LETTER_QUEUE_URL").rpartition("/")[0] + "/"
