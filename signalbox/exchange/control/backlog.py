"""The age of the oldest waiting message of the queues that the stage's functions read and no template contains."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from signalbox.exchange.model.control_ports import ControlPorts
from signalbox.queues import QueueName

# SQS publishes a value each minute, some minutes late.
WINDOW = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class BacklogService:
    """Measures the queues of exchanges and the control queues of users."""

    ports: ControlPorts

    def oldest(self) -> timedelta | None:
        """Return the age of the oldest waiting message, or None if none waits. Raises `UnavailableError`.

        CloudWatch bills each metric that is read, so that only queues with waiting messages are looked up there.
        """
        waiting = [queue for queue in self.ports.parallel_map(self._if_waiting, self._queues()) if queue is not None]
        ages = [age for age in self.ports.parallel_map(self._age, waiting) if age is not None]
        return max(ages, default=None)

    def _queues(self) -> Iterator[QueueName]:
        for exchange in self.ports.store.exchanges.every():
            yield self.ports.names.queue(exchange.name)
        for user in self.ports.store.users.every():
            yield self.ports.names.control_queue(user.name)

    def _if_waiting(self, queue: QueueName) -> QueueName | None:
        size = self.ports.sqs.sizes([queue]).get(queue)
        return queue if size is not None and size.waiting else None

    def _age(self, queue: QueueName) -> timedelta | None:
        return self.ports.metrics.activity(queue, since=self.ports.now() - WINDOW).oldest
