"""Containers of pods, as threads: each reads the queues in its pod's variables for as long as the pod exists."""

import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.config import Config
from urllib3.exceptions import HTTPError

from signalbox.local.demo.consumer import Receipt
from signalbox.queues import QueueName
from tests.kubernetes.cluster import STAY, ApiError, Namespace

LOOK_SECONDS = 0.1
# Threads of all pods share a client.
CONNECTIONS = Config(max_pool_connections=50)
KILLED_AT_ONCE = {"gracePeriodSeconds": 0}


@dataclass(slots=True)
class Container:
    """The process in one pod; it counts a message as received when it has deleted it, as a handler that commits."""

    sqs: Any
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
        url = ""
        while not self._ending.is_set():
            try:
                url = url or self.sqs.get_queue_url(QueueName=name)["QueueUrl"]
                found = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1)
            except self.sqs.exceptions.QueueDoesNotExist:
                self._ending.wait(LOOK_SECONDS)  # it crashes and is started again
                continue
            if messages := found.get("Messages", []):
                with suppress(self.sqs.exceptions.QueueDoesNotExist):
                    self._work(url, name, messages)

    def _work(self, url: str, name: QueueName, messages: Sequence[Mapping[str, Any]]) -> None:
        receipts = [Receipt(time.time_ns(), message["Body"], name) for message in messages]
        left = {str(number): message["ReceiptHandle"] for number, message in enumerate(messages)}
        while left and not self._killed:
            entries = [{"Id": number, "ReceiptHandle": handle} for number, handle in left.items()]
            deleted = self.sqs.delete_message_batch(QueueUrl=url, Entries=entries)
            for one in deleted.get("Successful", []):
                del left[one["Id"]]
                self.received.append(receipts[int(one["Id"])])
            for one in deleted.get("Failed", []):
                if one["SenderFault"]:  # its visibility timeout is over: it comes again
                    del left[one["Id"]]


@dataclass(slots=True)
class Pods:
    """The pods of a workload; their template has the annotation STAY, so that a pod ends after its process."""

    namespace: Namespace
    selector: str
    session: boto3.Session
    variables: Sequence[str]
    received: list[Receipt] = field(default_factory=list)
    kills: int = 0
    _containers: dict[str, Container] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _chance: random.Random = field(default_factory=lambda: random.Random(1))  # noqa: S311 - the choice is no secret

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

    def kill_one(self) -> None:
        """Kill the process of a pod in the middle of its work, and the pod with it."""
        with self._lock:
            pods = [pod for pod in self._listed() if pod["metadata"]["uid"] in self._containers]
            pod = self._chance.choice(pods)
            self._containers.pop(pod["metadata"]["uid"]).end(killed=True)
            path = self.namespace.path("pods", pod["metadata"]["name"])
            self.namespace.api.call("DELETE", path, KILLED_AT_ONCE)
            self.kills += 1

    def _follow(self, stopping: threading.Event) -> None:
        sqs = self.session.client("sqs", config=CONNECTIONS)
        while not stopping.wait(LOOK_SECONDS):
            # While the cluster is away, processes go on.
            with self._lock, suppress(HTTPError, ApiError):
                self._look(sqs)

    def _look(self, sqs: Any) -> None:
        pods = {pod["metadata"]["uid"]: pod for pod in self._listed()}
        for uid in self._containers.keys() - pods.keys():
            self._containers.pop(uid).end()  # the pod was deleted by force
        for uid, pod in pods.items():
            if "deletionTimestamp" in pod["metadata"]:
                self._terminate(uid, pod["metadata"]["name"])
            elif uid not in self._containers:
                environment = self.namespace.environment(pod)
                names = [QueueName(environment[variable]) for variable in self.variables]
                self._containers[uid] = Container(sqs, self.received, names)
                self._containers[uid].start()

    def _terminate(self, uid: str, name: str) -> None:
        if container := self._containers.pop(uid, None):
            container.end()
        try:
            self.namespace.patch("pods", name, {"metadata": {"annotations": {STAY: None}}})
        except ApiError as error:
            if error.status != 404:  # it has just ended
                raise

    def _listed(self) -> list[Any]:
        return self.namespace.pods(self.selector)
