"""Splitting: a deployed consumer of the run's own, and a developer whose filter takes some of its messages."""

from datetime import timedelta

from signalbox.cli.verify.trial import Trial, WrongResult, expect
from signalbox.errors import RejectedError
from signalbox.local.demo.splitting import DEPLOYED, SplitTrial
from signalbox.queues import QueueName

CAPABILITY = "splitting"
DEVELOPERS = ("ann",)
MESSAGES = 20
START = timedelta(minutes=3)
NEEDED_SETTINGS = "a stage in AWS needs the settings splittable_queues=demo-* and splittable_targets=lambda/demo-*"


def verify_splitting(trial: Trial) -> None:
    """Run all steps."""
    journal, name = trial.journal, trial.names.consumer
    with journal.step(CAPABILITY, "a deployed consumer"):
        split = SplitTrial.deploy(
            trial.deployment,
            name,
            queue=QueueName(name),
            developers=DEVELOPERS,
            sessions=trial.names.user,
            visibility_seconds=_visibility_seconds(trial),
        )
    before = split.consumer.mappings()
    clients = split.clients()
    with journal.step(CAPABILITY, "a session starts"):
        try:
            ready = [client.start(timeout=START) for client in clients]
        except RejectedError as refused:
            raise WrongResult(f"{refused} ({NEEDED_SETTINGS})") from refused
    with journal.step(CAPABILITY, "messages are shared by the filter") as timing:
        got = split.share(ready, messages=MESSAGES)
        trial.meter.note(CAPABILITY, "message", MESSAGES)
        expect(got["ann"] == got[DEPLOYED] == MESSAGES // 2, f"the shares are {dict(got)}")
        timing.detail = f"ann {got['ann']}, the deployed consumer {got[DEPLOYED]}"
    with journal.step(CAPABILITY, "the session ends, and the consumer is restored"):
        split.end(clients)
        after = split.consumer.mappings()
        expect(after == before, f"the consumer reads {sorted(after)} instead of {sorted(before)}")


def _visibility_seconds(trial: Trial) -> int:
    """Return the shortest visibility time-out of a queue that the stage can split: the time-out of `split`."""
    lambda_ = trial.deployment.session().client("lambda")
    function = trial.deployment.outputs["SplitFunctionName"]
    return int(lambda_.get_function_configuration(FunctionName=function)["Timeout"]) + 1
