"""The trial realm of the deployed stage, and its users."""

import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from websockets.sync.client import ClientConnection, connect

from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.session import Login
from signalbox.clients.web_socket import connector
from signalbox.live.wamp.codec import SUBPROTOCOL
from signalbox.local.live_users import start_functions

PREFIX = "trial"
ROLES = {"subscriber": {}, "publisher": {}, "caller": {}}


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
        users = [{"role": role, "name": name, "ticket": ticket} for role, (name, ticket) in self.users.items()]
        assert start_functions(self.url, users), "no event came through the stage"

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


@contextmanager
def connected(place: TrialRealm) -> Iterator[ClientConnection]:
    """Provide a connection without a session, for messages of WAMP as they are sent."""
    with connect(place.url, subprotocols=[SUBPROTOCOL]) as socket:
        yield socket


def ask(socket: ClientConnection, *message: object) -> list[Any]:
    """Send a message, and return the next one of the router."""
    socket.send(json.dumps(message))
    return received(socket)


def received(socket: ClientConnection) -> list[Any]:
    """Return the next message of the router."""
    found: list[Any] = json.loads(socket.recv(timeout=60))
    return found
