"""A shop: the topic of an order decides which workers get it."""

from celery import Celery, Task
from celery.utils.log import get_task_logger
from kombu import Exchange, Queue

orders = Exchange("shop", type="topic")

app = Celery("shop", broker="signalbox://local")
app.conf.task_queues = [
    Queue("parcels", orders, routing_key="order.#"),
    Queue("customs", orders, routing_key="order.abroad.*"),
]
app.conf.task_acks_late = True  # a killed worker's orders go to another one
app.conf.broker_transport_options = {"visibility_timeout": 30}  # seconds later

logger = get_task_logger(__name__)


@app.task(bind=True)
def order(self: Task, goods: str) -> None:
    """Handle an order in the department of this worker."""
    department = self.request.hostname.partition("@")[0]
    logger.info("%s: %s", department, goods)
