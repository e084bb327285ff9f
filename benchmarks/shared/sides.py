"""The two brokers of a comparison, Signalbox and upstream's, with the same interface for clients and proxies."""

import base64
import json
from dataclasses import dataclass, field, replace

from signalbox.clients.stage_session import LocalSession
from signalbox.local.emulator.program import ACCOUNT

SIGNALBOX = "Signalbox"
UPSTREAM = "upstream"


@dataclass(frozen=True, slots=True)
class Side:
    """One broker on the emulator: the URL of its proxies, the queue of its clients and their credentials."""

    name: str
    broker_url: str
    queue_name: str
    region: str
    endpoint_url: str
    access_key_id: str
    secret_access_key: str = field(repr=False)

    @property
    def client_queue_url(self) -> str:
        """The broker queue's URL for upstream's client, which accepts no other host."""
        return f"https://sqs.{self.region}.amazonaws.com/{ACCOUNT}/{self.queue_name}"

    @property
    def queue_url(self) -> str:
        """The broker queue's URL on the emulator."""
        return f"{self.endpoint_url}/{ACCOUNT}/{self.queue_name}"

    @property
    def encoded_credentials(self) -> str:
        """The client's credentials in the format of upstream's client (common/sqscreds)."""
        pair = {"aws-access-key-id": self.access_key_id, "aws-secret-key": self.secret_access_key}
        return base64.b64encode(json.dumps(pair).encode()).decode()

    def session(self) -> LocalSession:
        """Return an AWS session with the client's credentials."""
        return LocalSession(
            self.endpoint_url,
            region=self.region,
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
        )

    def with_broker(self, broker_url: str) -> "Side":
        """Return a copy with the URL of another broker."""
        return replace(self, broker_url=broker_url)
