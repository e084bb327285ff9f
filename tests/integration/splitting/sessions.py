"""Users of splitting: they apply registries and have sessions on a target."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from signalbox.cli.shared.deployment import Deployment
from signalbox.clients.control import ControlClient
from signalbox.clients.splitting.control import split_client
from signalbox.clients.splitting.sessions import SessionClient, SessionRequest
from signalbox.control.protocol import CommandRejected
from signalbox.splitting.control.protocol import SessionStatus
from tests.patience import slowness

START_TIMEOUT = timedelta(minutes=4)
BEAT_SECONDS = 10

Entries = Mapping[str, Mapping[str, object]]
"""The filters of a session by queue id."""


@dataclass(frozen=True, slots=True)
class Users:
    """The users of one target."""

    deployment: Deployment
    target: str

    @contextmanager
    def control(self) -> Iterator[ControlClient]:
        outputs, sqs = self.deployment.outputs, self.deployment.session().client("sqs")
        prefix = outputs["SplitReplyQueuePrefix"]
        with split_client(sqs, control_queue_url=outputs["SplitControlQueueUrl"], reply_queue_prefix=prefix) as control:
            yield control

    def apply(self, *documents: Mapping[str, object]) -> None:
        with self.control() as control:
            assert control.ask("apply", {"documents": list(documents)}) == {"targets": [self.target]}

    def splits(self) -> list[Any]:
        with self.control() as control:
            status: Any = control.ask("status", {"target": self.target})
        return list(status["splits"])

    def temporary_queues(self) -> list[str]:
        prefix = self.deployment.outputs["TemporaryQueuePrefix"]
        return list(self.deployment.session().client("sqs").list_queues(QueueNamePrefix=prefix).get("QueueUrls", []))

    @contextmanager
    def session(self, name: str, entries: Entries) -> Iterator[SessionStatus]:
        """Yield a session that is ready, and end it."""
        with self.control() as control:
            client = SessionClient(control, self._request(name, entries))
            state = client.start(timeout=START_TIMEOUT * slowness())
            with _beating(client):
                yield state
            client.stop()

    def refusal(self, name: str, entries: Entries) -> str:
        """Return the reason why a session is refused."""
        with self.control() as control:
            try:
                SessionClient(control, self._request(name, entries)).start(timeout=START_TIMEOUT * slowness())
            except CommandRejected as error:
                return str(error)
        raise AssertionError("the session was not refused")

    def _request(self, name: str, entries: Entries) -> SessionRequest:
        queues = {queue_id: {"queue_type": "SQS", **entry} for queue_id, entry in entries.items()}
        return SessionRequest(self.target, name, f"{name}@laptop", {"feature": {"split_queues": queues}})


@contextmanager
def _beating(client: SessionClient) -> Iterator[None]:
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(BEAT_SECONDS):
            client.heartbeat()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
