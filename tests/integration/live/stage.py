"""The trial realm of the deployed stage, and its users."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import Cursor
from signalbox.clients.live.session import Login
from signalbox.clients.web_socket import connector
from signalbox.errors import SignalboxError
from signalbox.live.wamp.patterns import TopicPattern
from tests.patience import wait_for

PREFIX = "trial"
WARM_UP_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class TrialRealm:
    """A realm behind a URL, and the names and tickets of its users by role."""

    url: str
    realm: str
    users: Mapping[str, tuple[str, str]]

    @classmethod
    def of(cls, local: Mapping[str, Any]) -> "TrialRealm":
        """Return the realm of a local.json."""
        users = {user["role"]: (user["name"], user["ticket"]) for user in local["live_users"]}
        return cls(local["websocket_url"], local["realm"], users)

    def warm_up(self) -> None:
        """Deliver an event, so that an instance of each function is warm."""
        topic = new_topic()

        def has_come() -> bool:
            with suppress(SignalboxError), self.client("source") as client:
                client.follow(Cursor(TopicPattern.parse(topic)))
                client.publish(topic, options={"exclude_me": False})
                return client.receive(WARM_UP_SECONDS / 4) is not None
            return False

        wait_for(has_come, "an event through the stage", seconds=WARM_UP_SECONDS, every=1)

    def login(self, role: str, *, url: str | None = None, **changed: str | None) -> dict[str, str | None]:
        """Return the login for a client's program."""
        name, ticket = self.users[role]
        login = {"url": url or self.url, "realm": self.realm, "method": "ticket", "user": name, "secret": ticket}
        return {**login, **changed}

    def client(self, role: str, *, url: str | None = None) -> LiveClient:
        """Return one of our clients."""
        return LiveClient(connector(url or self.url), Login(self.realm, *self.users[role]))

    @contextmanager
    def publisher(self) -> Iterator[LiveClient]:
        """Provide a client that may publish."""
        with self.client("source") as client:
            yield client


def new_topic() -> str:
    """Return an unused topic."""
    return f"{PREFIX}.t{secrets.token_hex(6)}"
