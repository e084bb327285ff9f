"""What a broker with one setting offers to the races."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from benchmarks.parts.races.accounts import Delivery


class Receiver(Protocol):
    """A subscriber's program. It connects again by itself."""

    @property
    def losses(self) -> int:
        """The number of lost connections."""

    def subscribe(self) -> None:
        """Connect and subscribe; return when the broker has confirmed it."""

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """Return the next event for the application, or None if none arrives in time."""

    def close(self) -> None:
        """Disconnect."""


class Sender(Protocol):
    """A publisher's program. It connects again by itself, and repeats what it knows to have failed."""

    def publish(self, topic: str, number: int) -> None:
        """Publish an event; return when it counts as accepted."""

    def close(self) -> None:
        """Disconnect."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A broker with one setting. Clients use the URLs that `receiver` and `sender` get, whose connections are cut."""

    broker: str
    name: str
    from_first: bool
    """Whether its subscribers request the past of their topics."""
    patience_seconds: float
    """How long nothing may arrive before what is missing counts as lost."""
    receiver_url: str
    sender_url: str
    receiver: Callable[[str, str, Sequence[str]], Receiver]
    """Makes the program of a URL, a subscriber's name, and its topics."""
    sender: Callable[[str], Sender]
    restart: Callable[[], None]
    """Ends the broker's processes with SIGKILL, and starts them again."""
    prepare: Callable[[Mapping[str, Sequence[str]]], None] = lambda _: None
    """Creates what has to exist before publishers begin, from the subscribers' names and topics."""

    @property
    def title(self) -> str:
        """The name of the row."""
        return f"{self.broker}, {self.name}"
