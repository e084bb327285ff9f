"""The stage that a broker URL names: `signalbox://[USER@]local` or `signalbox://[USER@]aws/STAGE?region=REGION`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.config import Config
from kombu.utils.url import maybe_sanitize_url, url_to_parts

from signalbox.aws.rendezvous.credentials import ClientCredentials
from signalbox.cli.shared.deployment import DEFAULT_STAGE, find_deployment, settings_session
from signalbox.cli.shared.user_keys import user_key
from signalbox.clients.deployment import require_local
from signalbox.clients.exchange.client import named_client, stage_client
from signalbox.errors import RejectedError
from signalbox.sarracenia.rights.names import UserName, parse_user_name

if TYPE_CHECKING:
    from kombu import Connection

    from signalbox.clients.exchange.client import ExchangeClient

LOCAL, AWS = "local", "aws"
FORMS = "signalbox://[USER@]local or signalbox://[USER@]aws/STAGE?region=REGION"
READ_SECONDS = 60  # three times the longest poll
TRIES = 3
CALLS_AT_ONCE = 50  # long polls, one for each consumed queue, and other calls


@dataclass(frozen=True, slots=True)
class Address:
    """A stage and the user of a connection; without a user, an administrator."""

    place: str
    stage: str = DEFAULT_STAGE
    user: UserName | None = None
    region: str | None = None
    port: int | None = None  # of the local stage's emulator, if the URL names it

    @classmethod
    def of_connection(cls, connection: "Connection") -> "Address":
        """Parse the URL of a connection, of which kombu passes on parts after a failover. Raises `RejectedError`."""
        place, port, user = connection.hostname, connection.port, connection.userid
        stage, query = connection.virtual_host.strip("/"), dict[str, str]()
        if "://" in (place or ""):
            _scheme, place, port, user, _password, stage, query = url_to_parts(place)
        if place not in (LOCAL, AWS) or (place == LOCAL and stage):
            shown = str(maybe_sanitize_url(str(connection.hostname)))[:200]  # some write a password, which none needs
            raise RejectedError(f"broker URL: expected {FORMS}, not {shown!r}")
        region = query.get("region") or connection.transport_options.get("region")
        return cls(place, stage or DEFAULT_STAGE, parse_user_name(user) if user else None, region, port)

    def client(self, *, connect_seconds: float) -> "ExchangeClient":
        """Return a client of the stage's exchanges after one call to it, which shows that it can be reached."""
        config = Config(
            connect_timeout=connect_seconds,
            read_timeout=READ_SECONDS,
            retries={"mode": "standard", "total_max_attempts": TRIES},
            max_pool_connections=CALLS_AT_ONCE,
            user_agent_extra="signalbox-kombu",
        )
        if self.place == AWS:
            sqs = settings_session(self.region).client("sqs", config=config)
            return named_client(sqs, self.user, stage=self.stage)
        deployment = require_local(find_deployment())
        key = user_key(deployment, self.user) if self.user else ClientCredentials(*deployment.administrator.values())
        endpoint = f"http://127.0.0.1:{self.port}" if self.port else deployment.endpoint_url
        sqs = deployment.session_of(key).client("sqs", config=config, endpoint_url=endpoint)
        client = stage_client(sqs, deployment.outputs, user=self.user)
        sqs.get_queue_url(QueueName=client.names.control_queue(self.user))
        return client
