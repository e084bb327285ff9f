"""Users' grants and credentials in the table `Live`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Attr

from signalbox.aws.live.account_items import credentials_item, grants_item, grants_of
from signalbox.aws.live.items import grants_key, secret_key
from signalbox.aws.shared.backoff import BACKOFF
from signalbox.aws.shared.dynamodb import put_all, succeeds
from signalbox.backoff import Backoff
from signalbox.live.admin.grants import Grant
from signalbox.live.admin.ports import StoredGrants
from signalbox.live.wamp.authentication import Credentials
from signalbox.sarracenia.rights.names import ExchangeName, UserName

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table


@dataclass(frozen=True, slots=True)
class DynamoGrants:
    """`Grants`: an item for each user and realm."""

    table: "Table"

    def find(self, realm: ExchangeName, user: UserName) -> StoredGrants:
        """Return the grants of a user in a realm."""
        item = self.table.get_item(Key=grants_key(realm, user), ConsistentRead=True).get("Item")
        return StoredGrants() if item is None else StoredGrants(grants_of(item), int(item["version"]))  # type: ignore[arg-type]  # a number of ours

    def save(self, realm: ExchangeName, user: UserName, grants: Sequence[Grant], *, replacing: StoredGrants) -> bool:
        """Store grants under the next version; return False if the stored ones are not `replacing` any more."""
        item = grants_item(realm, user, grants, version=replacing.version + 1)
        is_as_read = Attr("version").eq(replacing.version) if replacing.version else Attr("pk").not_exists()
        return succeeds(lambda: self.table.put_item(Item=item, ConditionExpression=is_as_read))


@dataclass(frozen=True, slots=True)
class DynamoSecrets:
    """`Secrets`: an item for each user."""

    table: "Table"
    backoff: Backoff = BACKOFF

    def put(self, secrets: Mapping[UserName, Credentials]) -> None:
        """Store users' credentials, replacing older ones, 25 in a call. Raises `ItemBusy`; some may then be stored."""
        items = [credentials_item(user, credentials) for user, credentials in secrets.items()]
        put_all(self.table, items, backoff=self.backoff)

    def remove(self, user: UserName) -> None:
        """Delete a user's credentials. Deleting twice is harmless."""
        self.table.delete_item(Key=secret_key(user))
