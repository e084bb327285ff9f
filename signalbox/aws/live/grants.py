"""Grants and what is kept of secrets, in the table `Live`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Attr

from signalbox.aws.live.account_items import credentials_item, grants_item, grants_of
from signalbox.aws.live.items import grants_key, secret_key
from signalbox.aws.shared.dynamodb import succeeds
from signalbox.live.admin.grants import Grant
from signalbox.live.admin.ports import KeptGrants
from signalbox.live.wamp.authentication import Credentials
from signalbox.sarracenia.rights.names import ExchangeName, UserName

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table


@dataclass(frozen=True, slots=True)
class DynamoGrants:
    """The grants of users, an item for each realm."""

    table: "Table"

    def find(self, realm: ExchangeName, user: UserName) -> KeptGrants:
        """Return the grants of a user in a realm."""
        item = self.table.get_item(Key=grants_key(realm, user), ConsistentRead=True).get("Item")
        return KeptGrants() if item is None else KeptGrants(grants_of(item), int(item["version"]))  # type: ignore[arg-type]  # a number of ours

    def save(self, realm: ExchangeName, user: UserName, grants: Sequence[Grant], *, replacing: KeptGrants) -> bool:
        """Store grants under the next version; False if those that are stored are not `replacing` any more."""
        item = grants_item(realm, user, grants, version=replacing.version + 1)
        is_as_read = Attr("version").eq(replacing.version) if replacing.version else Attr("pk").not_exists()
        return succeeds(lambda: self.table.put_item(Item=item, ConditionExpression=is_as_read))


@dataclass(frozen=True, slots=True)
class DynamoSecrets:
    """What there is of the secrets of users."""

    table: "Table"

    def put(self, user: UserName, credentials: Credentials) -> None:
        """Store what there is of a user's secret in the place of that of an older one."""
        self.table.put_item(Item=credentials_item(user, credentials))

    def remove(self, user: UserName) -> None:
        """Forget a user's secret; one that is gone already is fine."""
        self.table.delete_item(Key=secret_key(user))
