"""Consumers as processes: the tasks of an ECS service, and a program that reads an SSM parameter."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3

from signalbox.clients.deployment import Deployment
from signalbox.queues import QueueName

CLUSTER = "demo"
ROLE = "demo-consumer-process"
AGENT_SECONDS = 0.2
# What a deployed consumer runs: it knows its queues from a variable or from a parameter that it reads each time.
PROGRAM = """
import json, os, time, boto3
sqs, ssm = boto3.client("sqs"), boto3.client("ssm")

def names():
    if "PARAMETER" not in os.environ:
        return [os.environ["QUEUE"]]
    return json.loads(ssm.get_parameter(Name=os.environ["PARAMETER"])["Parameter"]["Value"]).values()

while True:
    time.sleep(0.1)
    for name in names():
        try:
            url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
            received = sqs.receive_message(QueueUrl=url, MessageAttributeNames=["All"]).get("Messages", [])
        except sqs.exceptions.QueueDoesNotExist:
            continue
        for message in received:
            print(json.dumps([name, message["Body"]]), flush=True)
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
"""


@dataclass(slots=True)
class ConsumerProcesses:
    """Processes with the credentials of a deployed consumer's role; each appends what it receives to one file."""

    file: Path
    environment: Mapping[str, str]
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def start(self, name: str, variables: Mapping[str, str]) -> None:
        with self.file.open("ab") as out:
            self.processes[name] = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-c", PROGRAM],
                env={**os.environ, **self.environment, **variables},
                stdout=out,
                stderr=subprocess.DEVNULL,  # a process is ended in the middle of a call
            )

    def stop(self, name: str) -> None:
        process = self.processes.pop(name)
        process.terminate()
        process.wait()

    def received(self) -> list[tuple[QueueName, str]]:
        """Return the queue and the body of each received message."""
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return [(QueueName(name), body) for name, body in map(json.loads, lines)]


@contextmanager
def consumer_processes(
    deployment: Deployment, deployed: Mapping[str, Any], folder: Path, *, parameters: Sequence[str] = ()
) -> Iterator[ConsumerProcesses]:
    """Yield processes whose role may read queues `demo-…`, temporary queues, and parameters."""
    iam = deployment.session().client("iam")
    arn = _role(iam, [deployment.outputs["TemporaryQueuePrefix"], "demo-"], parameters)
    with assumed_role(deployment, arn) as session:
        processes = ConsumerProcesses(folder / "received", _variables(session, deployed))
        try:
            yield processes
        finally:
            for name in list(processes.processes):
                processes.stop(name)


def _variables(session: boto3.Session, deployed: Mapping[str, Any]) -> dict[str, str]:
    credentials = session.get_credentials()
    assert credentials is not None
    return {
        "AWS_ENDPOINT_URL": deployed["endpoint_url"],
        "AWS_DEFAULT_REGION": deployed["region"],
        "AWS_ACCESS_KEY_ID": credentials.access_key,
        "AWS_SECRET_ACCESS_KEY": credentials.secret_key,
        "AWS_SESSION_TOKEN": credentials.token,
    }


def _role(iam: Any, queues: Sequence[str], parameters: Sequence[str]) -> str:
    trust = {"Effect": "Allow", "Principal": {"Service": "ecs-tasks.amazonaws.com"}, "Action": "sts:AssumeRole"}
    reading = ["sqs:GetQueueUrl", "sqs:GetQueueAttributes", "sqs:ReceiveMessage", "sqs:DeleteMessage"]
    statements = [
        {"Effect": "Allow", "Action": reading, "Resource": [f"arn:aws:sqs:*:*:{prefix}*" for prefix in queues]},
        {
            "Effect": "Allow",
            "Action": "ssm:GetParameter",
            "Resource": [f"arn:aws:ssm:*:*:parameter/{name}" for name in parameters or ["none"]],
        },
    ]
    with suppress(iam.exceptions.EntityAlreadyExistsException):
        iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument=_document([trust]))
    iam.put_role_policy(RoleName=ROLE, PolicyName="read", PolicyDocument=_document(statements))
    return str(iam.get_role(RoleName=ROLE)["Role"]["Arn"])


def _document(statements: Sequence[Mapping[str, object]]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


@dataclass(slots=True)
class ContainerAgent:
    """Runs a process for each container of each running task of a service, as an agent of ECS does."""

    ecs: Any
    service: str
    processes: ConsumerProcesses

    @contextmanager
    def running(self) -> Iterator[None]:
        ended = threading.Event()
        thread = threading.Thread(target=self._run, args=(ended,), daemon=True)
        thread.start()
        with ExitStack() as stack:
            stack.callback(thread.join)
            stack.callback(ended.set)
            yield

    def _run(self, ended: threading.Event) -> None:
        while not ended.wait(AGENT_SECONDS):
            wanted = self._containers()
            for name in self.processes.processes.keys() - wanted.keys():
                self.processes.stop(name)
            for name in wanted.keys() - self.processes.processes.keys():
                self.processes.start(name, wanted[name])

    def _containers(self) -> dict[str, dict[str, str]]:
        """Return the variables of the containers that run, by task and container."""
        arns = self.ecs.list_tasks(cluster=CLUSTER, serviceName=self.service)["taskArns"]
        tasks = self.ecs.describe_tasks(cluster=CLUSTER, tasks=arns)["tasks"] if arns else []
        running = {task["taskArn"]: task["taskDefinitionArn"] for task in tasks if task["lastStatus"] == "RUNNING"}
        return {
            f"{task} {container['name']}": {one["name"]: one["value"] for one in container.get("environment", ())}
            for task, definition in running.items()
            for container in self._definition(definition)["containerDefinitions"]
        }

    def _definition(self, arn: str) -> Any:
        return self.ecs.describe_task_definition(taskDefinition=arn)["taskDefinition"]


@contextmanager
def assumed_role(deployment: Deployment, role_arn: str) -> Iterator[boto3.Session]:
    """Yield a session with the credentials of a role, which trusts the administrator until the block ends."""
    session = deployment.session()
    iam, sts = session.client("iam"), session.client("sts")
    name = role_arn.rpartition("/")[2]
    trusted = iam.get_role(RoleName=name)["Role"]["AssumeRolePolicyDocument"]
    administrator = sts.get_caller_identity()["Arn"]
    more = {"Effect": "Allow", "Principal": {"AWS": administrator}, "Action": "sts:AssumeRole"}
    both = trusted | {"Statement": [*trusted["Statement"], more]}
    iam.update_assume_role_policy(RoleName=name, PolicyDocument=json.dumps(both))
    try:
        key = sts.assume_role(RoleArn=role_arn, RoleSessionName="permissions")["Credentials"]
        yield _Session(deployment.endpoint_url, deployment.region, key)
    finally:
        iam.update_assume_role_policy(RoleName=name, PolicyDocument=json.dumps(trusted))


class _Session(boto3.Session):
    """A boto3 session with temporary credentials for the emulator."""

    def __init__(self, endpoint_url: str | None, region: str, key: Mapping[str, str]) -> None:
        super().__init__(key["AccessKeyId"], key["SecretAccessKey"], key["SessionToken"], region_name=region)
        self._endpoint_url = endpoint_url

    def client(self, *arguments: Any, **options: Any) -> Any:
        return super().client(*arguments, **options | {"endpoint_url": self._endpoint_url})
