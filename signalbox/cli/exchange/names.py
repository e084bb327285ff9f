"""Names of exchanges and queues in errors: the nearest existing ones to a mistyped name."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from signalbox.control.protocol import CommandRejected
from signalbox.errors import RejectedError, SignalboxError
from signalbox.nearest import suggestion

if TYPE_CHECKING:
    from signalbox.clients.exchange.client import ExchangeClient

# The errors of our client about a name that may be mistyped.
ABOUT_NAME = re.compile(
    r"\b(?:exchange|queue) '([^']+)'(?: does not exist|: the user's role does not include its name)"
)


def known_names(client: "ExchangeClient") -> Sequence[str]:
    """Return the names of the exchanges and queues that the user may read."""
    return [one["exchange"] for one in client.exchanges()] + [one["queue"] for one in client.queues()]


@contextmanager
def nearest_names(client: "ExchangeClient") -> Iterator[None]:
    """Add the nearest existing name to our client's error about an exchange or a queue; the stage's replies have it."""
    try:
        yield
    except CommandRejected:
        raise
    except RejectedError as error:
        about = ABOUT_NAME.search(str(error))
        hint = "" if about is None else name_hint(client, about[1])
        if not hint:
            raise
        raise type(error)(f"{error}{hint}") from error


def name_hint(client: "ExchangeClient", name: str) -> str:
    """Return the exchange or queue that a mistyped name may mean; nothing if the stage does not list them."""
    is_exchange = name.startswith("x")
    try:
        found = client.exchanges() if is_exchange else client.queues()
    except SignalboxError:
        return ""  # what has led here counts
    return suggestion(name, [one["exchange" if is_exchange else "queue"] for one in found])
