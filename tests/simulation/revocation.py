"""The stage of live with a guest whose right to read is taken and given again by commands."""

from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from lambdas.exchange import control
from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.aws.live.account_items import credentials_item
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.shared.expressions import Put
from signalbox.clients.control import ControlClient
from signalbox.clients.live.cursor import PatternCursor, ReceivedEvent
from signalbox.errors import SignalboxError
from signalbox.exchange.model.records import User
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.live.wamp.options import LastEvents
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role
from stacks.settings.choices import VISIBILITY_PER_TIMEOUT
from tests.simulation.clients import SetUpClient, shared_client
from tests.simulation.exchange import begin_of_stage
from tests.simulation.functions import Mapping_
from tests.simulation.live import CONFIG, ENVIRONMENT, NAMES, REALM, SECRET, TOPICS, LiveWorld
from tests.simulation.services import arn_of
from tests.simulation.splitting import CONTROL_SECONDS, CONTROL_VISIBILITY
from tests.simulation.sqs import URL

GUEST = UserName("guest")
CONTROL, REPLIES = NAMES.control_queue(None), NAMES.reply_queue(None)
GRANT = {"user": GUEST, "exchange": REALM, "right": "read", "match": "prefix", "uri": "trial"}
CONTROL_ENVIRONMENT = {
    **ENVIRONMENT,
    "EXCHANGE_CONTROL_QUEUE_URL": URL + CONTROL,
    "EXCHANGE_RETENTION_SECONDS": str(CONFIG.exchange_retention_seconds),
    "EXCHANGE_VISIBILITY_SECONDS": str(VISIBILITY_PER_TIMEOUT * CONFIG.route_timeout_seconds),
    "EXCHANGE_USER_QUOTA": str(CONFIG.exchange_user_quota),
    "QUEUE_METRICS_DELAY_SECONDS": "1200",
    "QUEUE_KEY_ARN": arn_of("kms", "key"),
    "ROUTE_CONCURRENCY": str(CONFIG.route_concurrency),
    "ROUTE_FUNCTION_ARN": arn_of("lambda", "route"),
    "ROUTE_ROLE_ID": "AROAROUTE",
}


class RevocationWorld(LiveWorld):
    """A stage of live with two publishers, one subscriber, two connections of a guest, and an administrator.

    `received` are the guest's events, and `without` the times in which the guest had no right: from the reply to
    `ungrant` until the next `grant` began.
    """

    def __init__(self, seed: int, **options: Any) -> None:
        self.received: list[tuple[float, ReceivedEvent]] = []
        self.without: list[tuple[float, float]] = []
        super().__init__(seed, **options)

    def _make_queues(self) -> None:
        super()._make_queues()
        self._make(CONTROL, {"VisibilityTimeout": str(CONTROL_VISIBILITY), "MessageRetentionPeriod": "3600"})
        self._make(REPLIES, {"VisibilityTimeout": "2", "MessageRetentionPeriod": "60"})

    def _make_tables(self) -> None:
        super()._make_tables()
        exchanges, live = (DynamoTable(SetUpClient(self.calls), name) for name in ("Exchanges", "Live"))
        DynamoUsers(exchanges).put(User(GUEST, Role.SUBSCRIBER, Ownership.STRICT, begin_of_stage(), "AIDAGUEST"))
        live.write(Put(credentials_item(GUEST, StoredSecret.of(SECRET, salt="salt", with_key=False))))

    def _make_functions(self) -> None:
        super()._make_functions()
        made = self.function("control", control.handler, timeout=CONTROL_SECONDS, environment=CONTROL_ENVIRONMENT)
        Mapping_(self.sqs.queues[CONTROL], made, batch_size=1, concurrency=10)

    def _make_clients(self) -> None:
        self.actor("subscriber0", partial(self._subscriber, 0))
        for number in range(2):
            self.actor(f"publisher{number}", partial(self._publisher, number), after=2)
            self.actor(f"guest{number}", self._guest, after=number)
        self.actor("administrator", self._change_rights)

    def _guest(self) -> None:
        kernel = self.kernel
        while kernel.now < self.end:
            cursor = PatternCursor(TopicPattern(MatchPolicy.PREFIX, "trial"), LastEvents(10))
            client = self._client(GUEST)
            client.follow(cursor)
            try:
                while not cursor.is_over and kernel.now < self.end:
                    event = client.receive(30)
                    if event is not None:
                        kernel.note(f"receives {event.topic} {event.sequence}")
                        self.received.append((kernel.now, event))
            except SignalboxError as error:  # the right is revoked, or the connection is lost
                kernel.note(f"ends: {error}")
            client.close()
            kernel.sleep(5)

    def _change_rights(self) -> None:
        kernel = self.kernel
        while kernel.now < self.end - 600:
            self._ask("grant")
            kernel.sleep(kernel.between(20, 150))
            self.actor(f"busy publisher {kernel.now:.0f}", self._publish_often)
            self._ask("ungrant")
            ended = kernel.now
            kernel.sleep(kernel.between(10, 60))
            self.without.append((ended, kernel.now))

    def _publish_often(self) -> None:
        """Publish before and after the reply, so that an instance that delivers has read the rights just before."""
        for number in range(8):
            self._publish(TOPICS[0], f"sqs busy {self.kernel.now:.0f}.{number}", "busy publisher")
            self.kernel.sleep(0.4)

    def _ask(self, command: str) -> None:
        """Send a command until it is answered."""
        kernel = self.kernel
        while True:
            sqs, clock = shared_client("sqs"), lambda: kernel.now
            client = ControlClient(sqs, URL + CONTROL, URL + REPLIES, clock=clock, sleep=kernel.sleep)
            try:
                client.ask(command, GRANT)
            except (SignalboxError, BotoCoreError, ClientError) as error:
                kernel.note(f"asks again: {error}")
                kernel.sleep(5)
                continue
            kernel.note(f"{command} is answered")
            return
