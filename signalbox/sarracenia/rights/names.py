"""Names of exchanges, queues and users, and the SQS queue names of exchanges and queues."""

import hashlib
import string
from typing import NewType

from signalbox.errors import RejectedError
from signalbox.queues import FIFO_SUFFIX, MAXIMUM_NAME_LENGTH, InvalidQueueName, QueueName, is_fifo

UserName = NewType("UserName", str)
ExchangeName = NewType("ExchangeName", str)

MAXIMUM_NAME_BYTES = 255  # AMQP, short string
# Short enough that a shortened SQS name still contains the whole `q_USER_`, on which permissions rely.
MAXIMUM_USER_LENGTH = 32
# The mark of dead-letter queues, and the ends of control and reply queues: `q_bob-dlq` has the dead letters of `q_bob`.
RESERVED_MARK, RESERVED_ENDINGS = "-dlq", ("-exchange-control", "-exchange-reply")
USER_CHARACTERS = frozenset(string.ascii_letters + string.digits + "-")
NAME_CHARACTERS = USER_CHARACTERS | {"_"}
HASH_LENGTH = 12


class InvalidUserName(RejectedError):
    """Raised for an invalid user name: ambiguous, or too long, as a part of queue names."""


class InvalidExchangeName(RejectedError):
    """Raised for an invalid exchange name."""


def parse_user_name(text: str) -> UserName:
    """Parse a user name. Raises `InvalidUserName`."""
    if RESERVED_MARK in text.lower() or text.lower().endswith(RESERVED_ENDINGS):
        reserved = f"names with {RESERVED_MARK!r}, and those that end as control and reply queues do, are reserved"
        raise InvalidUserName(f"user {text[:80]!r}: {reserved}")
    # With an underscore or a dot, `xs_alice_b` would belong to `alice` and to `alice_b`.
    if 1 <= len(text) <= MAXIMUM_USER_LENGTH and set(text) <= USER_CHARACTERS:
        return UserName(text)
    raise InvalidUserName(f"user {text[:80]!r}: expected 1 to {MAXIMUM_USER_LENGTH} letters, digits and '-'")


def parse_exchange_name(text: str) -> ExchangeName:
    """Parse an exchange name such as `xpublic` or `xs_alice_images.fifo`. Raises `InvalidExchangeName`."""
    stem = text.removesuffix(FIFO_SUFFIX)
    if stem.startswith("x") and set(stem) <= NAME_CHARACTERS and len(text) <= MAXIMUM_NAME_LENGTH:
        return ExchangeName(text)
    raise InvalidExchangeName(
        f"exchange {text[:80]!r}: expected 'x' and letters, digits, '-' and '_', {MAXIMUM_NAME_LENGTH} in all at most"
    )


def parse_queue_name(text: str) -> str:
    """Parse a queue name of AMQP such as `q_alice.subscribe.weather.host_12345678`. Raises `InvalidQueueName`."""
    size_bytes = len(text.encode(errors="replace"))
    if text.startswith("q_") and text.isprintable() and size_bytes <= MAXIMUM_NAME_BYTES:
        return text
    raise InvalidQueueName(f"queue {text[:80]!r}: expected 'q_' and printable characters, {MAXIMUM_NAME_BYTES} bytes")


def queue_user(queue: str) -> UserName:
    """Return the owner that a queue's name states, whether or not there is such a user: `alice` for `q_alice_all`."""
    return UserName(readable_name(queue.removesuffix(FIFO_SUFFIX)).removeprefix("q_").partition("_")[0])


def source_exchange(user: UserName, *, suffix: str = "") -> ExchangeName:
    """Return the name of the exchange to which a source posts. Raises `InvalidExchangeName`."""
    return parse_exchange_name(f"xs_{user}_{suffix}" if suffix else f"xs_{user}")


def sqs_name(name: str, *, prefix: str = "") -> QueueName:
    """Return the SQS name of an exchange or queue: the same name if valid in SQS, else its beginning and a hash."""
    suffix = FIFO_SUFFIX if is_fifo(name) else ""
    stem, room = name.removesuffix(suffix), MAXIMUM_NAME_LENGTH - len(prefix) - len(suffix)
    readable = readable_name(stem)
    if readable == stem and len(stem) <= room:
        return QueueName(prefix + stem + suffix)
    # The hash keeps names apart that differ only in characters that are replaced or cut off.
    digest = hashlib.sha256(stem.encode(errors="surrogatepass")).hexdigest()[:HASH_LENGTH]
    return QueueName(f"{prefix}{readable[: room - HASH_LENGTH - 1]}-{digest}{suffix}")


def readable_name(name: str) -> str:
    """Replace characters that SQS does not allow: dots by `_`, which ends a user's name, others by `-`."""
    return "".join(c if c in NAME_CHARACTERS else "_" if c == "." else "-" for c in name)
