"""The items of the table `Exchanges`: keys, and the conversion between records and items."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from signalbox.aws.shared.dynamodb import milliseconds, moment
from signalbox.aws.shared.expressions import Item
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.issuers import Issuer
from signalbox.exchange.model.patterns import Pattern, place_of
from signalbox.exchange.model.records import (
    Binding,
    DeclaredQueue,
    ExchangeRecord,
    ListedExchange,
    LiveSettings,
    MinuteCounts,
    QueueSettings,
    ResourceKind,
    ResourceRef,
    Retention,
    User,
)
from signalbox.exchange.model.topics import RoutingKey
from signalbox.forms import Form, Forms
from signalbox.sarracenia.rights.names import ExchangeName, UserName

if TYPE_CHECKING:
    from signalbox.messages import MessageId

USER = "user"
LEFT = "left"
LISTED = "listed"
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
    return named_key(resource.kind, resource.name)


def named_key(kind: str, name: str) -> Item:
    """Return the key of the record of a kind and a name."""
    return {"pk": f"{kind}#{name}", "sk": str(kind)}


def listed_key(kind: str, name: str) -> Item:
    """Return the key of the small item that the index lists of a record."""
    return named_key(kind, name) | {"sk": LISTED}


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
    return BINDING + place_of(words[0] if words else "")


def first_word_place(sort_key: str) -> str:
    """Return the place of the first word of the binding with a sort key."""
    return sort_key.removeprefix(BINDING).partition("\n")[0] + "\n"


def back_reference_key(binding: Binding) -> Item:
    """Return the key of a binding's second item, in the partition of its target."""
    return {"pk": partition(binding.target), "sk": f"{BACK_REFERENCE}{binding.exchange}#{binding.pattern}"}


def waiting_key(owner: DeclaredName, day: str = "") -> Item:
    """Return the key of the numbers of waiting copies of an owner, `q_USER` or an existing queue, published on a day.

    Without a day, the sort key is the prefix of those of all days.
    """
    return {"pk": partition(ResourceRef(ResourceKind.QUEUE, owner)), "sk": f"waiting#{day}"}


def minute_key(begins_at: datetime) -> str:
    """Return the sort key of the counters of a minute; its number of digits is constant until 2160."""
    return f"{MINUTE}{int(begins_at.timestamp()) // 60}"


def head_key(exchange: ExchangeName, key: RoutingKey) -> Item:
    """Return the key of the head of a routing key."""
    return {"pk": f"{HEAD}{exchange}", "sk": f"{HEAD_KEY}{key}"}


def sent_key(message_id: "MessageId", part: int = 0) -> Item:
    """Return the key of an item that lists sent copies of an unfinished publication."""
    return {"pk": f"sent#{message_id}", "sk": sent_sort_key(part)}


def sent_sort_key(part: int) -> str:
    """Return the sort key of an item of sent copies; most publications have the first part only."""
    return f"sent{part or ''}"


def arvados_key() -> Item:
    """Return the key of the item that names the realm of Arvados' clients."""
    return {"pk": "arvados", "sk": "realm"}


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
    kind = LIVE_ONLY_USER if user.is_live_only else USER
    return user_key(user.name) | USER_RECORD.write(user) | {"kind": kind, "user_id": user.user_id or NO_IDENTITY}


def user_of(item: Item) -> User:
    """Return the user of an item."""
    return USER_RECORD.read(item | {"user_id": item["user_id"] or None})


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


def _rule_list(rules: Mapping[str, Retention]) -> list[Item]:
    # A list and not a map: the empty prefix is valid, and DynamoDB does not allow empty names.
    return [{"prefix": prefix} | RETENTION.write(rule) for prefix, rule in rules.items()]


def _rules(items: Iterable[Item]) -> Mapping[str, Retention]:
    return {item["prefix"]: RETENTION.read(item) for item in items}


# The forms of types in items, whose numbers are `Decimal`.
FORMS = Forms(
    {
        int: Form(int, int),
        datetime: Form(milliseconds, moment),
        timedelta: Form(
            lambda duration: Decimal(str(duration.total_seconds())), lambda seconds: timedelta(seconds=float(seconds))
        ),
    }
)
RETENTION = FORMS.record(Retention, names={"age": "age_seconds"}, sparse=["count", "age"])
FORMS.define(Mapping[str, Retention], Form(_rule_list, _rules))
FORMS.record(Issuer, sparse=["label", "role_claim", "client_id", "origins"])
FORMS.record(LiveSettings, sparse=["anonymous", "arvados", "arvados_api", "issuers", "earlier"])
FORMS.record(
    QueueSettings,
    names={"expires": "expires_seconds", "message_ttl": "message_ttl_seconds", "keep": KEEP_SECONDS},
    sparse=["expires", "message_ttl", "keep", "group_by"],
)
EXCHANGE_RECORD = FORMS.record(
    ExchangeRecord,
    names={"is_deleting": IS_DELETING},
    sparse=["created_by", "alternate", "is_deleting", "live", "earlier", "changed_at"],
)
LISTED_EXCHANGE = FORMS.record(
    ListedExchange, names={"is_deleting": IS_DELETING}, sparse=["created_by", "alternate", "is_deleting", "is_live"]
)
QUEUE_RECORD = FORMS.record(
    DeclaredQueue,
    names={"is_deleting": IS_DELETING},
    sparse=["owner", "consumed_at", "is_deleting", "dead_letters"],
    flat=["settings"],
)
USER_RECORD = FORMS.record(User, sparse=["commands_from"])
