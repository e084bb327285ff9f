"""The quotas of users: how many exchanges and queues one may declare, and how many bindings a target may have."""

from signalbox.errors import RejectedError
from signalbox.exchange.control.caller import Caller
from signalbox.exchange.model.control_ports import ControlPorts
from signalbox.exchange.model.ports import Exchanges, Queues
from signalbox.exchange.model.records import Binding, ResourceKind, ResourceRef
from signalbox.sarracenia.rights.permissions import Right, Role

# SNS has 200 filter policies a topic, and EventBridge 300 rules a bus.
MAXIMUM_BINDINGS = 200
MAXIMUM_WORDS = 2_000  # in the patterns of a target: every router of an exchange has them in memory, 260 bytes a word
# Of the quota of queues, rounded up: each exchange takes `route_concurrency` functions of the account at most.
SHARE_OF_EXCHANGES = 5
WITHOUT_QUOTA = (Role.ADMIN, Role.FEEDER)


class QuotaExceeded(RejectedError):
    """Raised when a user would have more exchanges, queues or bindings than the stage permits."""


def refuse_declaration(caller: Caller, resource: ResourceRef, ports: ControlPorts) -> None:
    """Refuse a new exchange or queue of a user who has declared as many as the quota. Raises `QuotaExceeded`.

    A deleted one counts while its dead-letter queue is left.
    """
    if caller.role in WITHOUT_QUOTA:
        return
    store, is_queue = ports.store, resource.kind is ResourceKind.QUEUE
    declared = _owned(store.queues if is_queue else store.exchanges, caller, resource.kind)
    left = _owned(store.left, caller, resource.kind) - {*declared, resource.name}
    if len(declared) + len(left) >= -(-ports.config.user_quota // (1 if is_queue else SHARE_OF_EXCHANGES)):
        dead = f" and {len(left)} deleted ones with dead letters" if left else ""
        remedy = "delete one" if declared else "take their dead letters, which ends them within a day"
        raise QuotaExceeded(
            f"user {str(caller.name)!r} has {len(declared)} {resource.kind}s{dead}, and exchange_user_quota allows no "
            f"more: {remedy}, or have an administrator declare {resource} or raise the setting"
        )


def _owned(records: Queues | Exchanges, caller: Caller, kind: ResourceKind) -> set[str]:
    beginnings = caller.beginnings(Right.CONFIGURE, kind)
    return {one.name for begins in beginnings for one in records.every(prefix=begins) if one.owner == caller.name}


def refuse_binding(caller: Caller, binding: Binding, ports: ControlPorts) -> None:
    """Refuse a user's new binding to a target that has as many as users may add. Raises `QuotaExceeded`."""
    if caller.role in WITHOUT_QUOTA:
        return
    bound = ports.store.bindings.to(binding.target)
    words = sum(len(one.pattern.words) for one in (*bound, binding))
    if binding not in bound and (len(bound) >= MAXIMUM_BINDINGS or words > MAXIMUM_WORDS):
        raise QuotaExceeded(
            f"{binding.target} has {len(bound)} bindings, and users may add no more than {MAXIMUM_BINDINGS} with "
            f"{MAXIMUM_WORDS:,} words together: remove one, use patterns with '*' or '#', or have an administrator "
            "add it"
        )
