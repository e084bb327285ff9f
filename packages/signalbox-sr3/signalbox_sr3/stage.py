"""Access of sr3's driver to a stage: by a user's access key, with all failures raised as `SignalboxError`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session

from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.exchange.errors import translated_errors
from signalbox.errors import UnavailableError
from signalbox.exchange.model.names import StageNames
from signalbox.sarracenia.broker_url import BrokerAccount

if TYPE_CHECKING:
    from signalbox.clients.exchange.consumer import Consumer

CONNECT_SECONDS = 10
READ_SECONDS = 60  # three times the longest poll
TRIES = 3
WAITING: Final = "ApproximateNumberOfMessages"


class StageUnreachable(UnavailableError):
    """Raised when SQS does not answer or refuses the access key; sr3 retries with growing pauses."""


def client_of(broker: BrokerAccount) -> ExchangeClient:
    """Return a client of a broker's exchanges.

    Raises `StageUnreachable`, and the errors of commands that the stage refuses.
    """
    with aws_errors(broker.url):
        sqs = _sqs(broker)
        names = StageNames(broker.stage)
        missing = f"stage {broker.stage!r} at {broker.host} has no user {str(broker.user)!r}"
        with translated_errors(sqs, missing=missing, denied=f"{missing}, or the access key belongs to another user"):
            url = sqs.get_queue_url(QueueName=names.control_queue(broker.user))["QueueUrl"]
        client = ExchangeClient(sqs, names, url.rpartition("/")[0] + "/", broker.user)
        client.names = StageNames(broker.stage, client.whoami()["exchange_prefix"])
    return client


def _sqs(broker: BrokerAccount) -> Any:  # noqa: ANN401 - botocore creates client classes at run time
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
def aws_errors(where: str) -> Iterator[None]:
    """Raise errors of AWS and of the network in the context as `StageUnreachable`."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise StageUnreachable(f"{where}: {error}") from error


def waiting_messages(client: ExchangeClient, consumer: "Consumer") -> int:
    """Return the approximate number of messages in a consumer's queue. Raises `StageUnreachable`."""
    with aws_errors(consumer.queue_url):
        attributes = client.sqs.get_queue_attributes(QueueUrl=consumer.queue_url, AttributeNames=[WAITING])
    return int(attributes["Attributes"][WAITING])
