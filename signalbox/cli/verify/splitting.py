"""Splitting: a deployed consumer of the run's own, and a developer whose filter takes some of its messages."""

from datetime import timedelta

from signalbox.cli.verify.trial import Trial, expect
from signalbox.local.demo.splitting import DEPLOYED, SplitTrial
from signalbox.queues import QueueName

CAPABILITY = "splitting"
DEVELOPERS = ("ann",)
MESSAGES = 20
START = timedelta(minutes=3)


def verify_splitting(trial: Trial) -> None:
    """Run all steps."""
    journal, name = trial.journal, trial.names.consumer
    with journal.step(CAPABILITY, "a deployed consumer"):
        split = SplitTrial.deploy(
            trial.deployment, name, queue=QueueName(name), developers=DEVELOPERS, sessions=trial.names.user
        )
    before = split.consumer.mappings()
    with split.clients() as clients:
        with journal.step(CAPABILITY, "a session starts"):
            ready = [client.start(timeout=START) for client in clients]
        with journal.step(CAPABILITY, "messages are shared by the filter") as timing:
            got = split.share(ready, messages=MESSAGES)
            trial.meter.note(CAPABILITY, "message", MESSAGES)
            expect(got["ann"] == got[DEPLOYED] == MESSAGES // 2, f"the shares are {dict(got)}")
            timing.detail = f"ann {got['ann']}, the deployed consumer {got[DEPLOYED]}"
        with journal.step(CAPABILITY, "the session ends, and the consumer is restored"):
            split.end(clients)
            after = split.consumer.mappings()
            expect(after == before, f"the consumer reads {sorted(after)} instead of {sorted(before)}")
