"""What is measured: Signalbox and upstream's broker, seen alike by clients and proxies."""

import base64
import json
from dataclasses import dataclass, field, replace

from signalbox.local.emulator.lifecycle import ACCOUNT
from signalbox.local.session import LocalSession

SIGNALBOX = "Signalbox"
UPSTREAM = "upstream"


@dataclass(frozen=True, slots=True)
class Side:
    """One broker on the emulator: where its proxies poll, where its clients send, and as whom."""

    name: str
    broker_url: str
    queue_name: str
    region: str
    endpoint_url: str
    access_key_id: str
    secret_access_key: str = field(repr=False)

    @property
    def client_queue_url(self) -> str:
        """Return the broker queue's URL as a real client is given it; it accepts no other host."""
        return f"https://sqs.{self.region}.amazonaws.com/{ACCOUNT}/{self.queue_name}"

    @property
    def queue_url(self) -> str:
        """Return the broker queue's URL on the emulator."""
        return f"{self.endpoint_url}/{ACCOUNT}/{self.queue_name}"

    @property
    def encoded_credentials(self) -> str:
        """Return the client's credentials as a real client is given them (upstream's common/sqscreds)."""
        pair = {"aws-access-key-id": self.access_key_id, "aws-secret-key": self.secret_access_key}
        return base64.b64encode(json.dumps(pair).encode()).decode()

    def session(self) -> LocalSession:
        """Return a session of the client."""
        return LocalSession(
            self.endpoint_url,
            region=self.region,
            access_key_id=self.access_key_id,
            secret_access_key=self.secret_access_key,
        )

    def with_broker(self, broker_url: str) -> "Side":
        """Return the same side with another broker's URL."""
        return replace(self, broker_url=broker_url)
