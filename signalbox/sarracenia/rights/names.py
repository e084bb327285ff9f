"""Names of exchanges, queues and users, and the names that SQS has for the first two."""

import hashlib
import string
from typing import NewType

from signalbox.errors import RejectedError
from signalbox.queues import FIFO_SUFFIX, MAXIMUM_NAME_LENGTH, InvalidQueueName, QueueName, is_fifo

UserName = NewType("UserName", str)
ExchangeName = NewType("ExchangeName", str)

MAXIMUM_NAME_BYTES = 255  # AMQP, short string
# What is left of a queue's name in SQS always has its whole `q_USER_`, on which permissions rely.
MAXIMUM_USER_LENGTH = 32
USER_CHARACTERS = frozenset(string.ascii_letters + string.digits + "-")
NAME_CHARACTERS = USER_CHARACTERS | {"_"}
HASH_LENGTH = 12


class InvalidUserName(RejectedError):
    """Raised when a name cannot be that of a user, because it could not be told apart, or has no room, in queues'."""


class InvalidExchangeName(RejectedError):
    """Raised when a name cannot be that of an exchange."""


def parse_user_name(text: str) -> UserName:
    """Return a user's name. Raises `InvalidUserName`."""
    # With an underscore or a dot, `xs_alice_b` would belong to `alice` and to `alice_b`.
    if 1 <= len(text) <= MAXIMUM_USER_LENGTH and set(text) <= USER_CHARACTERS:
        return UserName(text)
    raise InvalidUserName(f"user {text[:80]!r}: expected 1 to {MAXIMUM_USER_LENGTH} letters, digits and '-'")


def parse_exchange_name(text: str) -> ExchangeName:
    """Return an exchange's name, such as `xpublic`, `xs_alice` or `xs_alice_images.fifo`."""
    stem = text.removesuffix(FIFO_SUFFIX)
    if stem.startswith("x") and set(stem) <= NAME_CHARACTERS and len(text) <= MAXIMUM_NAME_LENGTH:
        return ExchangeName(text)
    raise InvalidExchangeName(
        f"exchange {text[:80]!r}: expected 'x' and letters, digits, '-' and '_', {MAXIMUM_NAME_LENGTH} in all at most"
    )


def parse_queue_name(text: str) -> str:
    """Return a queue's name as AMQP has it, such as `q_alice.subscribe.weather.alice_host_12345678`."""
    size_bytes = len(text.encode(errors="replace"))
    if text.startswith("q_") and text.isprintable() and size_bytes <= MAXIMUM_NAME_BYTES:
        return text
    raise InvalidQueueName(f"queue {text[:80]!r}: expected 'q_' and printable characters, {MAXIMUM_NAME_BYTES} bytes")


def source_exchange(user: UserName, *, suffix: str = "") -> ExchangeName:
    """Return the exchange to which a source posts."""
    return parse_exchange_name(f"xs_{user}_{suffix}" if suffix else f"xs_{user}")


def sqs_name(name: str, *, prefix: str = "") -> QueueName:
    """Return the name in SQS of an exchange or queue: its own where SQS takes it, else its beginning and a hash."""
    suffix = FIFO_SUFFIX if is_fifo(name) else ""
    stem, room = name.removesuffix(suffix), MAXIMUM_NAME_LENGTH - len(prefix) - len(suffix)
    readable = readable_name(stem)
    if readable == stem and len(stem) <= room:
        return QueueName(prefix + stem + suffix)
    # Not a shorter name alone: two that differ at their ends must not meet in one queue.
    digest = hashlib.sha256(stem.encode(errors="surrogatepass")).hexdigest()[:HASH_LENGTH]
    return QueueName(f"{prefix}{readable[: room - HASH_LENGTH - 1]}-{digest}{suffix}")


def readable_name(name: str) -> str:
    """Return a name in the characters that SQS has; only a dot becomes an underscore, which ends a user's name."""
    return "".join(c if c in NAME_CHARACTERS else "_" if c == "." else "-" for c in name)
