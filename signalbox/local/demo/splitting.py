"""The demo of splitting: two developers share the queue of a deployed consumer."""

from signalbox.flows.consumer import DeployedConsumer
from signalbox.flows.splitting import CAPABILITY, SharedQueues
from signalbox.flows.trial import Trial
from signalbox.queues import QueueName

QUEUE, CONSUMER = QueueName("demo-memes"), "demo-meme-app"


def show_splitting(trial: Trial) -> None:
    """Deploy the consumer unless it exists, and share its queue."""
    session, prefix = trial.deployment.session(), trial.deployment.outputs["TemporaryQueuePrefix"]
    with trial.journal.step(CAPABILITY, "a deployed consumer") as timing:
        consumer = DeployedConsumer.deploy(session, CONSUMER, [QUEUE], temporary_prefix=prefix)
        timing.detail = f"{CONSUMER} reads {QUEUE}"
    SharedQueues(trial, consumer, "demo", consumer.mappings).share()
