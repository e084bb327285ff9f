"""The names of kombu's exchanges and queues on a stage, and their routing keys."""

from dataclasses import dataclass

from amqp.exceptions import AMQPNotImplementedError

from signalbox.queues import FIFO_SUFFIX
from signalbox.sarracenia.rights.names import ExchangeName, UserName, sqs_name

# Names of Sarracenia, whose owner a name states: kombu's programs use such exchanges and queues under the same names.
OF_ANY_USER, QUEUES, PUBLIC, PUBLIC_SUFFIX = ("xs_", "xl_", "xr_"), "q_", "public", "_public"
# The exchange of a user to which every queue is bound by its name. Administrators send to queues directly.
DEFAULT = "default"
WILDCARDS = {"*": "%2A", "#": "%23"}


@dataclass(frozen=True, slots=True)
class Namespace:
    """The namespace of a connection: users do not share names. `prefix` begins the names of the stage's SQS queues."""

    user: UserName | None
    prefix: str

    def queue(self, name: str) -> str:
        """Return the name of a queue: `celery` is `q_alice_celery` for the user alice, `q__celery` without a user."""
        _refuse_ordered(name)
        return name if name.startswith(QUEUES) else f"{QUEUES}{self.user or ''}_{name}"

    def exchange(self, name: str) -> ExchangeName:
        """Return the name of an exchange: `celery` is `xs_alice_celery` for the user alice, `x_celery` without a user.

        Names with other characters, and long ones, are replaced by a readable part and a hash.
        """
        _refuse_ordered(name)
        if name.startswith(OF_ANY_USER) or name == f"x{PUBLIC}" or (name[:1] == "x" and name.endswith(PUBLIC_SUFFIX)):
            return ExchangeName(name)
        # Users with loose names may read all names that end like this: a hash makes the exchange private.
        private = name + "\0" if name.endswith(PUBLIC) else name
        beginning = f"xs_{self.user}_" if self.user else "x_"
        return ExchangeName(sqs_name(private, prefix=self.prefix + beginning).removeprefix(self.prefix))

    def are_of(self, exchange: str, key: str, name: str, routing_key: str) -> bool:
        """Return whether an exchange and a key of the stage are those that `name` and `routing_key` are sent to."""
        is_named = not name.endswith(FIFO_SUFFIX) and self.exchange(name or DEFAULT) == exchange
        return is_named and escaped(routing_key) == key


def _refuse_ordered(name: str) -> None:
    if name.endswith(FIFO_SUFFIX):
        raise AMQPNotImplementedError(f"{name!r} would be ordered, which kombu cannot use: choose another name")


def pattern_of(kind: str, key: str) -> str:
    """Return the binding pattern of a key in an exchange of a kind: fanout, direct or topic."""
    if kind == "fanout":
        return "#"
    return key if kind == "topic" else escaped(key)


def escaped(key: str) -> str:
    """Return a key to publish with, or to bind to a direct exchange: none of its words is a wildcard."""
    return ".".join(WILDCARDS.get(word, word) for word in key.split("."))
