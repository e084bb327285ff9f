"""The time until a session is ready, and from its end until the target reads the original again, on the emulator.

A kind of target is a function in `KINDS` that deploys one and says what it reads; a new kind needs no more than that.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from signalbox.cli.splitting.stage import control_of
from signalbox.clients.splitting.heartbeats import HeartbeatThread
from signalbox.clients.splitting.sessions import SessionClient, SessionRequest
from signalbox.flows.consumer import DeployedConsumer, wait_until
from signalbox.local.demo.kubernetes import QUEUE, STAGE, DeployedWorkload, attached_cluster
from signalbox.queues import FIFO_SUFFIX, QueueName

if TYPE_CHECKING:
    import boto3

    from signalbox.clients.deployment import Deployment

TIMEOUT = timedelta(minutes=10)
LOOK_SECONDS = 0.1
CLUSTER = "demo"
OWNER = "benchmark"


@dataclass(frozen=True, slots=True)
class Trial:
    """A deployed target of one queue; `reads_original` says whether it reads that queue alone."""

    target: str
    registry: Mapping[str, object]
    queue_url: str
    reads_original: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Times:
    """The seconds of one session."""

    kind: str
    use: str
    ready: float
    back: float
    over: float


# What a target needs only while it is measured is entered into the stack.
Deploy = Callable[["Deployment", QueueName, ExitStack], Trial]


def on_stage(deployment: "Deployment", *, kinds: Sequence[str], say: Callable[[str], None]) -> Iterator[Times]:
    """Yield the times of each kind, for a session that gets no message and for one that gets some until its end."""
    for kind in kinds:
        name, deploy = KINDS[kind]
        with ExitStack() as stack:
            trial = deploy(deployment, name, stack)
            with control_of(deployment) as control:
                control.ask("apply", {"documents": [trial.registry]})
            for use in ("no message", "messages until then"):
                say(f"{kind}, {use}")
                yield _times(deployment, trial, kind, use)


def _times(deployment: "Deployment", trial: Trial, kind: str, use: str) -> Times:
    with control_of(deployment) as control:
        entry = {"queue_type": "SQS", "message_filter": {"owner": f"^{OWNER}$"}}
        config = {"feature": {"split_queues": {"*": entry}}}
        client = SessionClient(control, SessionRequest(trial.target, OWNER, OWNER, config))
        began = time.monotonic()
        state = client.start(timeout=TIMEOUT)
        ready = time.monotonic() - began
        with HeartbeatThread(client, print).running():
            if use != "no message":
                _send_and_receive(deployment.session(), trial.queue_url, state.queues[0].url)
        began = time.monotonic()
        client.stop()
        back = _seconds(began, trial.reads_original)
        over = _seconds(began, lambda: not _splits(control, trial.target))
    return Times(kind, use, ready, back, over)


def _send_and_receive(session: "boto3.Session", original: str, own: str) -> None:
    sqs = session.client("sqs")
    group: Any = {}
    if own.endswith(FIFO_SUFFIX):
        group = {"MessageGroupId": "g", "MessageDeduplicationId": str(time.time_ns())}
    attributes: Any = {"owner": {"DataType": "String", "StringValue": OWNER}}
    sqs.send_message(QueueUrl=original, MessageBody="one", MessageAttributes=attributes, **group)

    def received() -> bool:
        found = sqs.receive_message(QueueUrl=own, WaitTimeSeconds=1).get("Messages", [])
        for message in found:
            sqs.delete_message(QueueUrl=own, ReceiptHandle=message["ReceiptHandle"])
        return bool(found)

    wait_until(received, "the session has its message", seconds=TIMEOUT.total_seconds())


def _seconds(began: float, is_so: Callable[[], bool]) -> float:
    while not is_so():
        time.sleep(LOOK_SECONDS)
    return time.monotonic() - began


def _splits(control: Any, target: str) -> Sequence[object]:  # noqa: ANN401 - the client of the control queue
    status: Any = control.ask("status", {"target": target})
    return list(status["splits"])


def _mapping(deployment: "Deployment", queue: QueueName, _stack: ExitStack) -> Trial:
    prefix = deployment.outputs["TemporaryQueuePrefix"]
    name = f"demo-times-{queue.removesuffix(FIFO_SUFFIX)}"
    consumer = DeployedConsumer.deploy(deployment.session(), name, [queue], temporary_prefix=prefix)
    is_back = {queue: "Enabled"}
    url = consumer.queues[queue]
    return Trial(consumer.target, consumer.registry(), url, lambda: consumer.mappings() == is_back)


def _environment(deployment: "Deployment", queue: QueueName, _stack: ExitStack) -> Trial:
    """Deploy a function that reads the queue of a variable; nothing calls it."""
    session = deployment.session()
    prefix, name = deployment.outputs["TemporaryQueuePrefix"], "demo-times-environment"
    consumer = DeployedConsumer.deploy(session, name, [], temporary_prefix=prefix)
    url, lambda_ = _queue(session, queue), session.client("lambda")
    lambda_.update_function_configuration(FunctionName=name, Environment={"Variables": {"QUEUE": queue}})
    lambda_.get_waiter("function_updated_v2").wait(FunctionName=name)

    def reads_original() -> bool:
        found = lambda_.get_function_configuration(FunctionName=name)
        return found["Environment"]["Variables"]["QUEUE"] == queue and found["LastUpdateStatus"] == "Successful"

    return Trial(consumer.target, _registry("Lambda", name), url, reads_original)


def _service(deployment: "Deployment", queue: QueueName, _stack: ExitStack) -> Trial:
    session, name = deployment.session(), "demo-times"
    url, ecs = _queue(session, queue), session.client("ecs")
    ecs.create_cluster(clusterName=CLUSTER)
    definition = ecs.register_task_definition(
        family=name,
        containerDefinitions=[{"name": "app", "image": "app", "environment": [{"name": "QUEUE", "value": queue}]}],
    )["taskDefinition"]["taskDefinitionArn"]
    ecs.create_service(cluster=CLUSTER, serviceName=name, taskDefinition=definition, desiredCount=2)

    def reads_original() -> bool:
        (found,) = ecs.describe_services(cluster=CLUSTER, services=[name])["services"]
        return [one["taskDefinition"] for one in found["deployments"] if one["runningCount"]] == [definition]

    return Trial(f"ecs/{CLUSTER}/{name}", _registry("EcsService", f"{CLUSTER}/{name}"), url, reads_original)


def _parameter(deployment: "Deployment", queue: QueueName, _stack: ExitStack) -> Trial:
    session, name = deployment.session(), "demo-times"
    url, ssm = _queue(session, queue), session.client("ssm")
    ssm.put_parameter(Name=name, Value=queue, Type="String", Overwrite=True)

    def reads_original() -> bool:
        return ssm.get_parameter(Name=name)["Parameter"]["Value"] == queue

    return Trial(f"ssm/{name}", _registry("SsmParameter", name), url, reads_original)


def _workload(deployment: "Deployment", _queue: QueueName, stack: ExitStack) -> Trial:
    """Deploy a workload to a cluster that runs as long as it is measured, with processes in its pods."""
    api = stack.enter_context(attached_cluster(deployment))
    workload = DeployedWorkload.deploy(deployment.session(), api, stage=STAGE)
    stack.enter_context(workload.pods.running())
    before = workload.specification()

    def reads_original() -> bool:
        return bool(workload.specification() == before and workload.is_rolled_out() and workload.pods.read(QUEUE))

    return Trial(workload.target, workload.registry(), workload.queues[QUEUE], reads_original)


def _registry(kind: str, name: str) -> dict[str, object]:
    queue = {"queueType": "SQS", "nameSource": {"envVar": "QUEUE"}}
    return {
        "apiVersion": "queues.mirrord.metalbear.co/v1alpha",
        "kind": "MirrordWorkloadQueueRegistry",
        "metadata": {"name": "times"},
        "spec": {"queues": {"times": queue}, "consumer": {"name": name, "workloadType": kind}},
    }


def _queue(session: "boto3.Session", name: QueueName) -> str:
    return session.client("sqs").create_queue(QueueName=name, Attributes={"VisibilityTimeout": "30"})["QueueUrl"]


KINDS: dict[str, tuple[QueueName, Deploy]] = {
    "Lambda, mapping": (QueueName("demo-times-mapping"), _mapping),
    "Lambda, mapping, FIFO": (QueueName("demo-times-mapping-in-order.fifo"), _mapping),
    "Lambda, variables": (QueueName("demo-times-variables"), _environment),
    "ECS service": (QueueName("demo-times-service"), _service),
    "SSM parameter": (QueueName("demo-times-parameter"), _parameter),
    "Deployment": (QUEUE, _workload),
}
