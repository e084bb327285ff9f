"""Containers of pods, as threads: each reads the queues in its pod's variables for as long as the pod exists."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from urllib3.exceptions import HTTPError

from signalbox.flows.consumer import Receipt
from signalbox.local.cluster_api import MERGE, ClusterApi, ClusterCallFailed
from signalbox.queues import QueueName

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef

LOOK_SECONDS = 0.1
# Threads of all pods share a client.
CONNECTIONS = Config(max_pool_connections=50)
# Of a pod's template: the cluster deletes such a pod when the annotation is removed, that is after its process.
STAY = "kubelet.signalbox.example/stay"


@dataclass(slots=True)
class Container:
    """The process in one pod; it counts a message as received when it has deleted it, as a handler that commits."""

    sqs: "SQSClient"
    received: list[Receipt]
    names: Sequence[QueueName]
    _ending: threading.Event = field(default_factory=threading.Event)
    _killed: bool = False
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Begin to read."""
        self._threads = [threading.Thread(target=self._read, args=(name,), daemon=True) for name in self.names]
        for thread in self._threads:
            thread.start()

    def end(self, *, killed: bool = False) -> None:
        """Finish the present messages and end; a killed process leaves them to the visibility timeout."""
        self._killed = killed
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _read(self, name: QueueName) -> None:
        while not self._ending.is_set():
            try:
                url = self.sqs.get_queue_url(QueueName=name)["QueueUrl"]
                while not self._ending.is_set():
                    found = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
                    self._work(url, name, found.get("Messages", []))
            except self.sqs.exceptions.QueueDoesNotExist:
                self._ending.wait(LOOK_SECONDS)  # it crashes and is started again

    def _work(self, url: str, name: QueueName, messages: "Sequence[MessageTypeDef]") -> None:
        receipts = [Receipt(time.time_ns(), message["Body"], name) for message in messages]
        left = {str(number): message["ReceiptHandle"] for number, message in enumerate(messages)}
        while left and not self._killed:
            entries: Any = [{"Id": number, "ReceiptHandle": handle} for number, handle in left.items()]
            deleted = self.sqs.delete_message_batch(QueueUrl=url, Entries=entries)
            for one in deleted.get("Successful", []):
                del left[one["Id"]]
                self.received.append(receipts[int(one["Id"])])
            for failed in deleted.get("Failed", []):
                if failed["SenderFault"]:  # its visibility timeout is over: it comes again
                    del left[failed["Id"]]


@dataclass(slots=True)
class Pods:
    """The pods of a workload, and the processes in them; their template has the annotation STAY."""

    api: ClusterApi
    namespace: str
    selector: str
    session: boto3.Session
    variables: Sequence[str]
    """The variables with names of queues."""
    received: list[Receipt] = field(default_factory=list)
    _containers: dict[str, Container] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Start and end processes as the API server shows pods, until the block ends."""
        stopping = threading.Event()
        thread = threading.Thread(target=self._follow, args=(stopping,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()
            for container in self._containers.values():
                container.end()

    def read(self, queue: QueueName) -> bool:
        """Return whether there are pods, and the process of each reads this queue alone."""
        with self._lock:
            return bool(self._containers) and all(one.names == [queue] for one in self._containers.values())

    def path(self, name: str = "") -> str:
        """Return the path of the pods in the API, or of one."""
        return f"/api/v1/namespaces/{self.namespace}/pods" + (f"/{name}" if name else "")

    def _follow(self, stopping: threading.Event) -> None:
        sqs = self.session.client("sqs", config=CONNECTIONS)
        while not stopping.wait(LOOK_SECONDS):
            # While the cluster is away, processes go on.
            with self._lock, suppress(HTTPError, ClusterCallFailed):
                self._look(sqs)

    def _look(self, sqs: "SQSClient") -> None:
        pods = {pod["metadata"]["uid"]: pod for pod in self._listed()}
        for uid in self._containers.keys() - pods.keys():
            self._containers.pop(uid).end()  # the pod was deleted by force
        for uid, pod in pods.items():
            if "deletionTimestamp" in pod["metadata"]:
                self._terminate(uid, pod["metadata"]["name"])
            elif uid not in self._containers:
                self._containers[uid] = Container(sqs, self.received, self._queues(pod))
                self._containers[uid].start()

    def _listed(self) -> list[Any]:
        found = self.api.get(self.path(), labelSelector=self.selector)["items"]
        return [pod for pod in found if pod["status"].get("phase") == "Running"]

    def _terminate(self, uid: str, name: str) -> None:
        if container := self._containers.pop(uid, None):
            container.end()
        self.api.call("PATCH", self.path(name), {"metadata": {"annotations": {STAY: None}}}, kind=MERGE)

    def _queues(self, pod: Mapping[str, Any]) -> list[QueueName]:
        (container,) = pod["spec"]["containers"]
        environment = {one["name"]: self._value(one) for one in container["env"]}
        return [QueueName(environment[variable]) for variable in self.variables]

    def _value(self, variable: Mapping[str, Any]) -> str:
        """Return a variable's value, as the kubelet resolves it when a container starts."""
        if "valueFrom" not in variable:
            return str(variable.get("value", ""))
        reference = variable["valueFrom"]["configMapKeyRef"]
        found = self.api.get(f"/api/v1/namespaces/{self.namespace}/configmaps/{reference['name']}")
        return str(found["data"][reference["key"]])
