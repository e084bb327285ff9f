"""The documents of exchanges, queues and bindings in replies of the control plane."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from signalbox.exchange.control.issuers import issuer_document
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.records import (
    Binding,
    DeclaredQueue,
    ExchangeRecord,
    ListedExchange,
    LiveSettings,
    ResourceKind,
    Retention,
)
from signalbox.queues import QueueName, QueueUrl


@dataclass(frozen=True, slots=True)
class Presenter:
    """Builds documents, which include the SQS name and URL of each resource."""

    names: StageNames
    queue_url: Callable[[QueueName], QueueUrl]

    def exchange(self, exchange: ExchangeRecord) -> dict[str, object]:
        """Return the document of an exchange with its settings."""
        return self.listed(exchange.listed) | {"live": None if exchange.live is None else _live(exchange.live)}

    def listed(self, exchange: ListedExchange) -> dict[str, object]:
        """Return the document of an exchange in a list."""
        return {
            "exchange": exchange.name,
            "ordered": exchange.resource.is_ordered,
            "alternate": exchange.alternate,
            "created_by": exchange.created_by,
            "created_at": exchange.created_at.isoformat(),
            "live": exchange.is_live,
            **self.queue_in_sqs(self.names.queue(exchange.name)),
        }

    def queue(self, queue: DeclaredQueue) -> dict[str, object]:
        """Return the document of a queue."""
        settings = queue.settings
        return {
            "queue": queue.name,
            "ordered": queue.resource.is_ordered,
            "owner": queue.owner,
            "created_at": queue.created_at.isoformat(),
            "consumed_at": time_text(queue.consumed_at),
            "expires_seconds": _seconds(settings.expires),
            "message_ttl_seconds": _seconds(settings.message_ttl),
            "prefetch": settings.prefetch,
            "maximum_receives": settings.maximum_receives,
            "group_by": settings.group_by,
            **self.queue_in_sqs(self.names.queue(queue.name)),
        }

    def queue_in_sqs(self, name: QueueName) -> dict[str, object]:
        """Return the SQS name and URL of a queue."""
        return {"sqs_name": name, "url": self.queue_url(name)}


def binding_document(binding: Binding) -> dict[str, object]:
    """Return the document of a binding, with the fields of the command `bind`."""
    field = "queue" if binding.target.kind is ResourceKind.QUEUE else "destination"
    return {"exchange": binding.exchange, "pattern": str(binding.pattern), field: binding.target.name}


def time_text(moment: datetime | None) -> str | None:
    """Return a time in ISO 8601, or None."""
    return None if moment is None else moment.isoformat()


def _live(live: LiveSettings) -> dict[str, object]:
    return {
        "order_by": live.order_by.value,
        "anonymous": live.anonymous,
        "retention": _retention(live.retention),
        "rules": {prefix: _retention(rule) for prefix, rule in live.rules.items()},
        "issuers": [issuer_document(issuer) for issuer in live.issuers],
        "arvados": live.arvados,
        "arvados_api": live.arvados_api or None,
    }


def _retention(retention: Retention) -> dict[str, object]:
    return {"count": retention.count, "age_seconds": _seconds(retention.age)}


def _seconds(time: timedelta | None) -> int | None:
    return None if time is None else int(time.total_seconds())
