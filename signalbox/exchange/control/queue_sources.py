"""The queues of the exchange on record, with the queues whose dead letters each takes."""

from collections.abc import Mapping, Sequence

from signalbox.exchange.model.control_ports import ControlPorts
from signalbox.exchange.model.names import dead_letter_name
from signalbox.queues import QueueName


def queue_sources(ports: ControlPorts) -> Mapping[QueueName, Sequence[QueueName]]:
    """Return the sources of every queue: of exchanges, declared queues and users."""
    found: dict[QueueName, Sequence[QueueName]] = {}
    names = [str(one.name) for one in ports.store.exchanges.every()]
    for queue in map(ports.names.queue, [*names, *(one.name for one in ports.store.queues.every())]):
        found |= {queue: (), dead_letter_name(queue): (queue,)}
    for user in ports.store.users.every():
        found |= {ports.names.control_queue(user.name): (), ports.names.reply_queue(user.name): ()}
    return found
