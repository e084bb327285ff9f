"""How grants and what is kept of secrets read in the table `Live`."""

from collections.abc import Iterable

from signalbox.aws.live.items import grants_key, secret_key
from signalbox.aws.shared.dynamodb import Item
from signalbox.live.admin.grants import Grant
from signalbox.live.wamp.authentication import Credentials
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right


def grants_item(realm: ExchangeName, user: UserName, grants: Iterable[Grant], *, version: int) -> Item:
    """Return the item of all grants of a user in a realm; `version` grows with every change."""
    told = [
        {"right": str(grant.right), "match": str(grant.pattern.match), "uri": grant.pattern.uri} for grant in grants
    ]
    return grants_key(realm, user) | {"realm": realm, "user": user, "grants": told, "version": version}


def grants_of(item: Item | None) -> tuple[Grant, ...]:
    """Return the grants of an item, or none if there is no item."""
    return tuple(
        # What could be granted once still holds, whatever may be granted now.
        Grant(Right(told["right"]), TopicPattern(MatchPolicy(told["match"]), told["uri"]))
        for told in (item or {}).get("grants", ())
    )


def credentials_item(user: UserName, credentials: Credentials) -> Item:
    """Return the item of what is kept of a user's secret."""
    told = {
        "salt": credentials.salt,
        "verifier": credentials.verifier,
        "iterations": credentials.iterations,
        "key": credentials.key,
    }
    return secret_key(user) | {name: value for name, value in told.items() if value is not None}


def credentials_of(item: Item) -> Credentials:
    """Return the credentials of an item."""
    return Credentials(item["salt"], item["verifier"], int(item["iterations"]), item.get("key"))
