"""The items of the table `Exchanges`: keys, and the conversion between records and items."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from signalbox.aws.shared.dynamodb import Item, milliseconds, moment
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.issuers import Issuer
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import (
    Binding,
    DeclaredQueue,
    Exchange,
    LiveSettings,
    MinuteCounts,
    OrderBy,
    QueueSettings,
    ResourceKind,
    ResourceRef,
    Retention,
    User,
)
from signalbox.exchange.model.topics import RoutingKey
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role

BY_KIND_INDEX = "by_kind"
USER = "user"
# The value of `kind` of users without an IAM identity. Whatever lists the users with identities and control queues does
# not read them.
LIVE_ONLY_USER, NO_IDENTITY = "live_user", ""
BINDING, BACK_REFERENCE, MINUTE, HEAD = "binding#", "bound#", "minute#", "head#"
HEAD_KEY = "key#"
KEEP_SECONDS = "keep_seconds"
IS_DELETING = "is_leaving"  # present only if true


def partition(resource: ResourceRef) -> str:
    """Return the partition key of an exchange or a queue."""
    return f"{resource.kind}#{resource.name}"


def record_key(resource: ResourceRef) -> Item:
    """Return the key of the record of an exchange or a queue."""
    return {"pk": partition(resource), "sk": str(resource.kind)}


def user_key(name: UserName) -> Item:
    """Return the key of a user's record."""
    return {"pk": f"{USER}#{name}", "sk": USER}


def rights_version_key() -> Item:
    """Return the key of the version of all users' rights."""
    return {"pk": "rights", "sk": "rights"}


def rights_version_of(item: Item) -> int:
    """Return the version of all users' rights of an item, which does not exist before the first change."""
    return int(item.get("version", 0))


def sender_key(user_id: str) -> Item:
    """Return the key that maps a SenderId to its user."""
    return {"pk": f"sender#{user_id}", "sk": "sender"}


def binding_key(binding: Binding) -> Item:
    """Return the key of a binding, which is sorted by the first word of its pattern."""
    # A line feed separates the parts: names contain none, while names and patterns may contain a `#`.
    sort_key = f"{first_word_key(binding.pattern.words)}{binding.target.kind}#{binding.target.name}\n{binding.pattern}"
    return {"pk": partition(ResourceRef(ResourceKind.EXCHANGE, binding.exchange)), "sk": sort_key}


def first_word_key(words: Sequence[str]) -> str:
    """Return the sort key prefix of the bindings whose patterns begin with the first of these words."""
    # A line feed in a word is replaced by a space; the prefix then only matches more bindings than necessary.
    return f"{BINDING}{words[0] if words else ''}".replace("\n", " ") + "\n"


def back_reference_key(binding: Binding) -> Item:
    """Return the key of a binding's second item, in the partition of its target."""
    return {"pk": partition(binding.target), "sk": f"{BACK_REFERENCE}{binding.exchange}#{binding.pattern}"}


def minute_key(begins_at: datetime) -> str:
    """Return the sort key of the counters of a minute; its number of digits is constant until 2160."""
    return f"{MINUTE}{int(begins_at.timestamp()) // 60}"


def head_key(exchange: ExchangeName, key: RoutingKey) -> Item:
    """Return the key of the head of a routing key."""
    return {"pk": f"{HEAD}{exchange}", "sk": f"{HEAD_KEY}{key}"}


def arvados_key() -> Item:
    """Return the key of the item that names the realm of Arvados' clients."""
    return {"pk": "arvados", "sk": "realm"}


def exchange_item(exchange: Exchange) -> Item:
    """Return the item of an exchange's record."""
    fields = {
        "kind": str(ResourceKind.EXCHANGE),
        "name": exchange.name,
        "alternate": exchange.alternate,
        "created_by": exchange.created_by,
        "created_at": milliseconds(exchange.created_at),
        IS_DELETING: exchange.is_deleting or None,
        "version": exchange.version,
        "live": None if exchange.live is None else _live_item(exchange.live),
    }
    return record_key(exchange.resource) | _present(fields)


def exchange_of(item: Item) -> Exchange:
    """Return the exchange of an item."""
    return Exchange(
        name=ExchangeName(item["name"]),
        created_by=item.get("created_by"),
        created_at=moment(item["created_at"]),
        alternate=item.get("alternate"),
        is_deleting=item.get(IS_DELETING, False),
        version=int(item["version"]),
        live=_live_of(item["live"]) if "live" in item else None,
    )


def queue_item(queue: DeclaredQueue) -> Item:
    """Return the item of a queue's record."""
    settings = queue.settings
    fields = {
        "kind": str(ResourceKind.QUEUE),
        "name": queue.name,
        "owner": queue.owner,
        "created_at": milliseconds(queue.created_at),
        "declared_at": milliseconds(queue.declared_at),
        "consumed_at": None if queue.consumed_at is None else milliseconds(queue.consumed_at),
        "expires_seconds": _seconds(settings.expires),
        "message_ttl_seconds": _seconds(settings.message_ttl),
        "prefetch": settings.prefetch,
        "maximum_receives": settings.maximum_receives,
        KEEP_SECONDS: _seconds(settings.keep),
        IS_DELETING: queue.is_deleting or None,
        "version": queue.version,
    }
    return record_key(queue.resource) | _present(fields)


def queue_of(item: Item) -> DeclaredQueue:
    """Return the queue of an item."""
    consumed_at = item.get("consumed_at")
    return DeclaredQueue(
        name=DeclaredName(item["name"]),
        owner=item.get("owner"),
        created_at=moment(item["created_at"]),
        declared_at=moment(item["declared_at"]),
        consumed_at=None if consumed_at is None else moment(consumed_at),
        settings=QueueSettings(
            expires=_duration(item.get("expires_seconds")),
            message_ttl=_duration(item.get("message_ttl_seconds")),
            prefetch=int(item["prefetch"]),
            maximum_receives=int(item["maximum_receives"]),
            keep=_duration(item.get(KEEP_SECONDS)),
        ),
        is_deleting=item.get(IS_DELETING, False),
        version=int(item["version"]),
    )


def binding_items(binding: Binding) -> Iterable[Item]:
    """Return the two items of a binding."""
    fields = {
        "exchange": binding.exchange,
        "target": binding.target.name,
        "target_kind": str(binding.target.kind),
        "pattern": str(binding.pattern),
    }
    return binding_key(binding) | fields, back_reference_key(binding) | fields


def binding_of(item: Item) -> Binding:
    """Return the binding of either of its items."""
    target = ResourceRef(ResourceKind(item["target_kind"]), item["target"])
    # A stored binding still routes, whatever new bindings are allowed.
    return Binding(ExchangeName(item["exchange"]), target, Pattern.stored(item["pattern"]))


def user_item(user: User) -> Item:
    """Return the item of a user's record."""
    fields = {
        "kind": LIVE_ONLY_USER if user.is_live_only else USER,
        "name": user.name,
        "role": str(user.role),
        "ownership": str(user.ownership),
        "created_at": milliseconds(user.created_at),
        "user_id": user.user_id or NO_IDENTITY,
    }
    return user_key(user.name) | fields


def user_of(item: Item) -> User:
    """Return the user of an item."""
    return User(
        name=UserName(item["name"]),
        role=Role(item["role"]),
        ownership=Ownership(item["ownership"]),
        created_at=moment(item["created_at"]),
        user_id=item["user_id"] or None,
    )


def minute_of(item: Item) -> MinuteCounts:
    """Return the counters of an item; a missing counter is zero."""
    last_at = item.get("last_at")
    counts = {name: int(item.get(name, 0)) for name in COUNTS}
    return MinuteCounts(
        begins_at=moment(Decimal(item["sk"].removeprefix(MINUTE)) * 60_000),
        size_bytes=int(item.get("bytes", 0)),
        last_at=None if last_at is None else moment(last_at),
        **counts,
    )


COUNTS = ("received", "routed", "dropped", "alternate", "rejected", "retried", "dead", "redelivered")


def _live_item(live: LiveSettings) -> Item:
    fields = {
        "order_by": str(live.order_by),
        "anonymous": live.anonymous,
        "retention": _retention_item(live.retention),
        # A list and not a map: the empty prefix is valid, and DynamoDB does not allow empty names.
        "rules": [{"prefix": prefix} | _retention_item(rule) for prefix, rule in live.rules.items()],
        "arvados": live.arvados or None,
        "arvados_api": live.arvados_api or None,
        "issuers": [_issuer_item(issuer) for issuer in live.issuers] or None,
    }
    return _present(fields)


def _live_of(item: Mapping[str, Any]) -> LiveSettings:
    return LiveSettings(
        order_by=OrderBy(item["order_by"]),
        anonymous=item.get("anonymous"),
        retention=_retention_of(item["retention"]),
        rules={rule["prefix"]: _retention_of(rule) for rule in item["rules"]},
        arvados=item.get("arvados", False),
        arvados_api=item.get("arvados_api", ""),
        issuers=tuple(map(_issuer_of, item.get("issuers", ()))),
    )


def _issuer_item(issuer: Issuer) -> Item:
    fields = {
        "url": issuer.url,
        "audience": issuer.audience,
        "label": issuer.label or None,
        "name_claim": issuer.name_claim,
        "role_claim": issuer.role_claim or None,
        "groups_claim": issuer.groups_claim,
        "skew_seconds": issuer.skew_seconds,
        "client_id": issuer.client_id or None,
        "origins": list(issuer.origins) or None,
    }
    return _present(fields)


def _issuer_of(item: Mapping[str, Any]) -> Issuer:
    return Issuer(
        url=item["url"],
        audience=item["audience"],
        label=item.get("label", ""),
        name_claim=item["name_claim"],
        role_claim=item.get("role_claim", ""),
        groups_claim=item["groups_claim"],
        skew_seconds=int(item["skew_seconds"]),
        client_id=item.get("client_id", ""),
        origins=tuple(item.get("origins", ())),
    )


def _retention_item(retention: Retention) -> Item:
    return _present({"count": retention.count, "age_seconds": _seconds(retention.age)})


def _retention_of(item: Mapping[str, Any]) -> Retention:
    count = item.get("count")
    return Retention(None if count is None else int(count), _duration(item.get("age_seconds")))


def _present(fields: Item) -> Item:
    return {name: value for name, value in fields.items() if value is not None}


def _seconds(duration: timedelta | None) -> Decimal | None:
    return None if duration is None else Decimal(str(duration.total_seconds()))


def _duration(seconds: Decimal | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=float(seconds))
