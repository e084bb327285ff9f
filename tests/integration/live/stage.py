"""Where tests of live join: the realm for trials on the deployed stage, and its users."""

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
from tests.integration.rendezvous.peers import wait_for

PREFIX = "trial"
WARM_UP_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Place:
    """A realm behind a URL, and its users' tickets by their roles' names."""

    url: str
    realm: str
    users: Mapping[str, tuple[str, str]]

    @classmethod
    def of(cls, local: Mapping[str, Any]) -> "Place":
        """Return the realm of a local.json."""
        users = {user["role"]: (user["name"], user["ticket"]) for user in local["live_users"]}
        return cls(local["websocket_url"], local["realm"], users)

    def warm_up(self) -> None:
        """Have an event go all the way, so that an instance of each function is there."""
        topic = new_topic()

        def has_come() -> bool:
            with suppress(SignalboxError), self.client("source") as client:
                client.follow(Cursor(TopicPattern.parse(topic)))
                client.publish(topic, options={"exclude_me": False})
                return client.receive(WARM_UP_SECONDS / 4) is not None
            return False

        wait_for(has_come, "an event through the stage", seconds=WARM_UP_SECONDS, every=1)

    def login(self, role: str, *, url: str | None = None, **changed: str | None) -> dict[str, str | None]:
        """Return what a client's program is told to join with."""
        name, ticket = self.users[role]
        told = {"url": url or self.url, "realm": self.realm, "method": "ticket", "user": name, "secret": ticket}
        return {**told, **changed}

    def client(self, role: str, *, url: str | None = None) -> LiveClient:
        """Return a client of ours."""
        return LiveClient(connector(url or self.url), Login(self.realm, *self.users[role]))

    @contextmanager
    def publisher(self) -> Iterator[LiveClient]:
        """Give a client that may publish."""
        with self.client("source") as client:
            yield client


def new_topic() -> str:
    """Return a topic that nobody has used."""
    return f"{PREFIX}.t{secrets.token_hex(6)}"
