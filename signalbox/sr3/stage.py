"""A stage as the driver asks it: with one user's access key, and with errors of ours alone."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session

from signalbox.clients.exchange.client import ExchangeClient
from signalbox.errors import UnavailableError
from signalbox.exchange.control.errors import translated_errors
from signalbox.exchange.model.names import StageNames
from signalbox.sarracenia.broker_url import Broker

if TYPE_CHECKING:
    from signalbox.clients.exchange.consumer import Consumer

CONNECT_SECONDS = 10
READ_SECONDS = 60  # three times the longest poll
TRIES = 3
WAITING = "ApproximateNumberOfMessages"


class StageUnreachable(UnavailableError):
    """Raised when SQS does not answer, or does not accept a key; sr3 asks again, less and less often."""


def client_of(broker: Broker) -> ExchangeClient:
    """Return the exchanges of a broker, with a queue for replies, which is gone after `with` it.

    Raises `StageUnreachable`, and whatever else the stage refuses.
    """
    with reaching(broker.url):
        sqs = _sqs(broker)
        names = StageNames(broker.stage)
        missing = f"stage {broker.stage!r} at {broker.host} has no user {str(broker.user)!r}"
        with translated_errors(sqs, missing=missing, denied=f"{missing}, or the access key is another's"):
            url = sqs.get_queue_url(QueueName=names.control_queue(broker.user))["QueueUrl"]
        client = ExchangeClient(sqs, names, url.rpartition("/")[0] + "/", broker.user)
        with ExitStack() as unless_it_works:
            unless_it_works.enter_context(client)
            client.names = StageNames(broker.stage, client.whoami()["exchange_prefix"])
            unless_it_works.pop_all()
    return client


def _sqs(broker: Broker) -> Any:  # noqa: ANN401 - botocore makes its clients when they are asked for
    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": TRIES},
        user_agent_extra="signalbox-sr3",
    )
    return Session().create_client(
        "sqs",
        region_name=broker.region,
        endpoint_url=broker.endpoint_url,
        aws_access_key_id=broker.access_key_id,
        aws_secret_access_key=broker.secret_access_key,
        config=config,
    )


@contextmanager
def reaching(where: str) -> Iterator[None]:
    """Tell meanwhile what AWS or the network refuses as an error of ours. Raises `StageUnreachable`."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise StageUnreachable(f"{where}: {error}") from error


def waiting_messages(client: ExchangeClient, consumer: "Consumer") -> int:
    """Return about how many messages wait in a consumer's queue. Raises `StageUnreachable`."""
    sqs: Any = client.sqs
    with reaching(consumer.queue_url):
        told = sqs.get_queue_attributes(QueueUrl=consumer.queue_url, AttributeNames=[WAITING])
    return int(told["Attributes"][WAITING])
