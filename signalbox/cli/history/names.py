"""Names of exchanges and queues that a history job reads or writes, checked before the job starts."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from signalbox.cli.exchange.names import known_names
from signalbox.cli.exchange.stage import client_of
from signalbox.cli.shared.stage import output
from signalbox.errors import RejectedError
from signalbox.exchange.model.names import dead_letter_name
from signalbox.nearest import suggestion

if TYPE_CHECKING:
    from signalbox.clients.deployment import Deployment
    from signalbox.clients.exchange.client import ExchangeClient


def is_live(deployment: "Deployment", exchange: str) -> bool:
    """Return whether an exchange is live; raises `RejectedError` for another one of which no log was exported."""
    from signalbox.aws.history.log_files import has_logs

    live = [one["exchange"] for one in client_of(deployment).exchanges() if one["live"]]
    if exchange in live:
        return True
    if not has_logs(deployment.session().client("s3"), output(deployment, "HistoryBucket"), exchange):
        raise RejectedError(f"there is no live exchange {exchange!r}{suggestion(exchange, live)}")
    return False


def check_names(deployment: "Deployment", selection: Mapping[str, str]) -> None:
    """Raise `RejectedError` unless a replay's destination, and its queue of dead letters, exist."""
    client = client_of(deployment)
    known = known_names(client)
    into, source = selection["into"], selection.get("dead_letters")
    if into not in known:
        raise RejectedError(f"--into: there is no {into!r}{suggestion(into, known)}")
    if source is not None and source not in known and not _has_dead_letters(client, source):
        raise RejectedError(f"--dead-letters: there is no {source!r}{suggestion(source, known)}")


def _has_dead_letters(client: "ExchangeClient", name: str) -> bool:
    """Return whether a deleted exchange or queue left its dead-letter queue."""
    try:
        client.sqs.get_queue_url(QueueName=dead_letter_name(client.names.queue(name)))
    except client.sqs.exceptions.QueueDoesNotExist:
        return False
    return True
