"""The peers of a stage in AWS: their tables and queues, with calls that end soon if their region is away."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.rendezvous.announcements import DynamoAnnouncements
from signalbox.aws.rendezvous.held_polls import DynamoPresence
from signalbox.aws.rendezvous.offers import DynamoOffers
from signalbox.aws.rendezvous.queues import SqsBrokerQueue, SqsClientQueues
from signalbox.aws.shared.errors import is_passing
from signalbox.aws.shared.table import DynamoTable
from signalbox.rendezvous.rules.answer_service import AnswerService
from signalbox.rendezvous.rules.peers import Peer

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

    from signalbox.clock import Clock
    from signalbox.rendezvous.rules.matching import RendezvousPolicy
    from signalbox.rendezvous.rules.peer_address import PeerAddress

FAILURES = (ClientError, BotoCoreError)
# The function `offer` has three seconds in all. The slowest pairs of regions need 0.3 s for a round trip.
TIMEOUT_SECONDS = 1
# One call: a region that is away costs one time-out, after which the peer rests. What `passes` is called again.
SHORT = Config(connect_timeout=TIMEOUT_SECONDS, read_timeout=TIMEOUT_SECONDS, retries={"total_max_attempts": 1})
# The answer of a proxy is tried again: no other function has it.
PATIENT = Config(connect_timeout=TIMEOUT_SECONDS, read_timeout=2, retries={"total_max_attempts": 2})


def passes(error: Exception) -> bool:
    """Return whether a region responded with an error that another call may not get, such as a throttled one."""
    return isinstance(error, ClientError) and is_passing(error)


class CreateClient(Protocol):
    """Creates a client of a service, as a session of botocore does."""

    def __call__(self, service_name: str, *, region_name: str, config: Config) -> Any:  # noqa: ANN401 - the service's
        """Return the client."""
        ...


def peers_of(addresses: Sequence["PeerAddress"], create: CreateClient, *, table: DynamoTable) -> list[Peer]:
    """Return the peers of the stage with this table, which gets the matches of its own proxies."""
    return [_peer(address, create, table) for address in addresses]


def _peer(address: "PeerAddress", create: CreateClient, table: DynamoTable) -> Peer:
    theirs = _table(address, create, SHORT)
    return Peer(
        address.region,
        DynamoOffers(theirs, matches=table, home=address.region),
        DynamoAnnouncements(theirs),
        DynamoPresence(theirs),
    )


def answer_service_of(
    address: "PeerAddress",
    create: CreateClient,
    *,
    broker_queue_url: str,
    region: str,
    clock: "Clock",
    policy: "RendezvousPolicy",
) -> AnswerService:
    """Return the service that answers the offers of a peer; `region` and `broker_queue_url` are this stage's own."""
    sqs: SQSClient = create("sqs", region_name=address.region, config=PATIENT)
    url = address.queue_url(broker_queue_url, region=region)
    return AnswerService(
        DynamoOffers(_table(address, create, PATIENT)),
        SqsClientQueues(sqs, arn_prefix="", stage=address.stage, sleep=clock.sleep),
        SqsBrokerQueue(sqs, queue_url=url),
        clock,
        policy,
    )


def _table(address: "PeerAddress", create: CreateClient, config: Config) -> DynamoTable:
    return DynamoTable(create("dynamodb", region_name=address.region, config=config), address.table)
