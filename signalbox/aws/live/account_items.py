"""The items of users' grants and credentials in the table `Live`."""

from collections.abc import Iterable

from signalbox.aws.live.items import grants_key, secret_key
from signalbox.aws.shared.dynamodb import Item
from signalbox.exchange.model.records import User
from signalbox.live.admin.grants import Grant, Rights
from signalbox.live.identity.tokens import TokenIdentity
from signalbox.live.wamp.authentication import Credentials
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right


def grants_item(realm: ExchangeName, user: UserName, grants: Iterable[Grant], *, version: int) -> Item:
    """Return the item of all grants of a user in a realm; `version` grows with every change."""
    documents = [
        {"right": str(grant.right), "match": str(grant.pattern.match), "uri": grant.pattern.uri} for grant in grants
    ]
    return grants_key(realm, user) | {"realm": realm, "user": user, "grants": documents, "version": version}


def grants_of(item: Item | None) -> tuple[Grant, ...]:
    """Return the grants of an item; an absent item has none."""
    return tuple(
        # Not parsed: a stored grant stays valid if the rules for patterns change.
        Grant(Right(one["right"]), TopicPattern(MatchPolicy(one["match"]), one["uri"]))
        for one in (item or {}).get("grants", ())
    )


def rights_of(realm: ExchangeName, user: User, grants: Item | None) -> Rights:
    """Return the rights of a user in a realm, given the item of the user's grants there."""
    return Rights.in_realm(realm, user=user.name, role=user.role, ownership=user.ownership, grants=grants_of(grants))


def rights_of_token(realm: ExchangeName, token: TokenIdentity, grants: Item | None) -> Rights:
    """Return the rights of a token's user in a realm, given the item of the grants to the user's name there."""
    return Rights.of_token(realm, role=token.role, grants=grants_of(grants))


def credentials_item(user: UserName, credentials: Credentials) -> Item:
    """Return the item of a user's credentials."""
    document = {
        "salt": credentials.salt,
        "verifier": credentials.verifier,
        "iterations": credentials.iterations,
        "key": credentials.key,
    }
    return secret_key(user) | {name: value for name, value in document.items() if value is not None}


def credentials_of(item: Item) -> Credentials:
    """Return the credentials of an item."""
    return Credentials(item["salt"], item["verifier"], int(item["iterations"]), item.get("key"))
