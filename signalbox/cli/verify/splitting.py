"""Splitting: two developers share a standard and a FIFO queue of a deployed consumer of the run's own."""

from signalbox.checkout import CHECKOUT
from signalbox.cli.verify.trial import NamedTrial
from signalbox.flows.consumer import DeployedConsumer
from signalbox.flows.splitting import CAPABILITY, SharedQueues
from signalbox.queues import FIFO_SUFFIX, QueueName
from signalbox.verify.questions import LIBRARIES
from signalbox.verify.report import has_lowest, lowest_versions


def verify_splitting(trial: NamedTrial) -> None:
    """Run all steps."""
    session, outputs, name = trial.deployment.session(), trial.deployment.outputs, trial.names.consumer
    with trial.journal.step(CAPABILITY, "a deployed consumer"):
        consumer = DeployedConsumer.deploy(
            session,
            name,
            [QueueName(name), QueueName(f"{name}-in-order{FIFO_SUFFIX}")],
            temporary_prefix=outputs["TemporaryQueuePrefix"],
            visibility_seconds=_visibility_seconds(trial),
        )
    with trial.journal.step(CAPABILITY, "the libraries of the runtime") as timing:
        timing.detail = _libraries(trial, consumer)
    SharedQueues(trial, consumer, trial.names.user, consumer.mappings).share()


def _libraries(trial: NamedTrial, consumer: DeployedConsumer) -> str:
    """Ask the consumer, whose runtime is that of the functions on AWS."""
    found = consumer.libraries()
    lowest = lowest_versions((CHECKOUT / "lambdas" / "runtime.in").read_text())
    trial.journal.answer(LIBRARIES, found, is_expected=has_lowest(found, lowest))
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _visibility_seconds(trial: NamedTrial) -> int:
    """Return the shortest visibility time-out of a queue that the stage can split: the time-out of `split`."""
    lambda_ = trial.deployment.session().client("lambda")
    function = trial.deployment.outputs["SplitFunctionName"]
    return int(lambda_.get_function_configuration(FunctionName=function)["Timeout"]) + 1
