"""The SQS names of the exchange's queues: of exchanges, declared queues, control and reply queues."""

import hashlib
from dataclasses import dataclass

from signalbox.exchange.model.bindings import DeclaredName
from signalbox.queues import FIFO_SUFFIX, MAXIMUM_NAME_LENGTH, QueueName, is_fifo
from signalbox.sarracenia.rights.names import (
    HASH_LENGTH,
    ExchangeName,
    InvalidExchangeName,
    InvalidUserName,
    UserName,
    parse_exchange_name,
    parse_user_name,
    sqs_name,
)

DEAD_LETTER_MARK = "-dlq"
CONTROL_MARK = "-exchange-control"
# Begins the names of queues that an app owns and the exchange does not make; commands do not accept it.
EXISTING = "sqs:"
REPLY_MARK = "-exchange-reply"
RETRY_MARK = "-exchange-retries"


@dataclass(frozen=True, slots=True)
class StageNames:
    """The names of a stage's resources; `prefix` begins the SQS names of exchanges and declared queues."""

    stage: str
    prefix: str = ""

    def queue(self, name: str) -> QueueName:
        """Return the SQS name of an exchange, a declared queue or an existing queue."""
        if is_existing(name):
            return QueueName(name.removeprefix(EXISTING))
        return sqs_name(name, prefix=self.prefix)

    def exchange_of(self, queue: QueueName) -> ExchangeName | None:
        """Return the exchange of an SQS queue, or None. An exchange's name is never shortened to a hash."""
        name = queue.removeprefix(self.prefix)
        if not queue.startswith(self.prefix) or is_dead_letter_name(name):
            return None
        try:
            return parse_exchange_name(name)
        except InvalidExchangeName:
            return None

    def control_queue(self, user: UserName | None) -> QueueName:
        """Return the control queue of a user, or of the administrators. Send permission identifies the user."""
        return QueueName(f"{self.stage}{CONTROL_MARK}" + (f"-{user}" if user else ""))

    def user_of(self, control_queue: str) -> UserName | None:
        """Return the user of a control queue, or None for the administrators. Raises `InvalidUserName`."""
        administrators = self.control_queue(None)
        if control_queue == administrators:
            return None
        if control_queue.startswith(f"{administrators}-"):
            return parse_user_name(control_queue.removeprefix(f"{administrators}-"))
        # Never None here: an unknown queue must not have the rights of administrators.
        raise InvalidUserName(f"{control_queue!r} is not a control queue of stage {self.stage!r}")

    def reply_queue(self, user: UserName | None) -> QueueName:
        """Return the reply queue of a user, or of the administrators."""
        return QueueName(f"{self.stage}{REPLY_MARK}" + (f"-{user}" if user else ""))

    def retry_queue(self, exchange: ExchangeName) -> QueueName:
        """Return the queue of the copies that wait for a retry: those of ordered exchanges have one of their own."""
        standard, ordered = self.retry_queues
        return ordered if is_fifo(exchange) else standard

    @property
    def retry_queues(self) -> tuple[QueueName, QueueName]:
        """Return the retry queues of standard and of ordered exchanges."""
        return QueueName(f"{self.stage}{RETRY_MARK}"), QueueName(f"{self.stage}{RETRY_MARK}{FIFO_SUFFIX}")

    def check_user(self, user: UserName) -> None:
        """Raise `InvalidUserName` for a user whose control queue would have a name that is too long."""
        room = MAXIMUM_NAME_LENGTH - len(self.control_queue(None)) - len("-")
        if len(user) > room:
            raise InvalidUserName(
                f"user {str(user)!r} has {len(user)} characters: on stage {self.stage!r} at most {room} are allowed, "
                f"since the name of the control queue, {str(self.control_queue(user))!r}, may have "
                f"{MAXIMUM_NAME_LENGTH} characters; choose a shorter name"
            )


def existing_queue(name: QueueName) -> DeclaredName:
    """Return the name under which an existing queue of the account is bound."""
    return DeclaredName(EXISTING + name)


def is_existing(name: str) -> bool:
    """Return whether a queue is one that the exchange neither makes, changes nor deletes."""
    return name.startswith(EXISTING)


def dead_letter_name(name: QueueName) -> QueueName:
    """Return the name of the dead-letter queue of an SQS queue."""
    suffix = FIFO_SUFFIX if is_fifo(name) else ""
    stem, ending = name.removesuffix(suffix), DEAD_LETTER_MARK + suffix
    room = MAXIMUM_NAME_LENGTH - len(ending)
    if len(stem) > room:
        digest = hashlib.sha256(stem.encode()).hexdigest()[:HASH_LENGTH]
        stem = f"{stem[: room - HASH_LENGTH - 1]}-{digest}"
    return QueueName(stem + ending)


def is_dead_letter_name(name: str) -> bool:
    """Return whether a name has the mark that is reserved for dead-letter queues, also in its middle.

    The policies of users end with it and `*`, since IAM allows them few characters.
    """
    return DEAD_LETTER_MARK in name


def exchange_name_problem(name: ExchangeName, *, prefix: str) -> str | None:
    """Return why a new exchange may not have this name, or None."""
    room = MAXIMUM_NAME_LENGTH - len(prefix)
    if len(name) > room:  # a router derives an exchange from its queue's name, which a hash would hide
        return f"has {len(name)} characters; at most {room} are allowed, after {prefix!r}"
    return dead_letter_problem(name)


def dead_letter_problem(name: str) -> str | None:
    """Return why neither an exchange nor a queue may have this name, or None."""
    if is_dead_letter_name(name):
        return f"contains {DEAD_LETTER_MARK!r}, as the names of dead-letter queues do"
    return None
