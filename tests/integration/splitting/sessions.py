"""Users of splitting: they apply registries and have sessions on a target."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from signalbox.cli.splitting.stage import control_of
from signalbox.clients.control import ControlClient
from signalbox.clients.deployment import Deployment
from signalbox.clients.splitting.heartbeats import HeartbeatThread
from signalbox.clients.splitting.sessions import SessionClient, SessionRequest
from signalbox.control.protocol import CommandRejected
from signalbox.flows.splitting import splits
from signalbox.splitting.control.protocol import SessionStatus
from tests.patience import wait_for

START_TIMEOUT = timedelta(minutes=4)
END_SECONDS = 400.0
BETWEEN_LOOKS = 1.5  # each look is a call of the function `control`, which also ends the split

Entries = Mapping[str, Mapping[str, object]]
"""The filters of a session by queue id."""


@dataclass(frozen=True, slots=True)
class Users:
    """The users of one target."""

    deployment: Deployment
    target: str

    def control(self) -> AbstractContextManager[ControlClient]:
        return control_of(self.deployment)

    def apply(self, *documents: Mapping[str, object]) -> None:
        with self.control() as control:
            assert control.ask("apply", {"documents": list(documents)}) == {"targets": [self.target]}

    def splits(self) -> list[Any]:
        with self.control() as control:
            return splits(control, self.target)

    def wait_until_over(self) -> None:
        """Wait until the target has no split."""
        wait_for(lambda: not self.splits(), "the split is over", seconds=END_SECONDS, every=BETWEEN_LOOKS)

    def temporary_queues(self) -> list[str]:
        prefix = self.deployment.outputs["TemporaryQueuePrefix"]
        return list(self.deployment.session().client("sqs").list_queues(QueueNamePrefix=prefix).get("QueueUrls", []))

    @contextmanager
    def session(self, name: str, entries: Entries, *, since_seconds: int | None = None) -> Iterator[SessionStatus]:
        """Yield a session that is ready, and end it; with `since_seconds` it got the messages kept in that time."""
        with self.control() as control:
            client = SessionClient(control, self._request(name, entries, since_seconds))
            state = client.start(timeout=START_TIMEOUT)
            with HeartbeatThread(client, print).running() as heartbeat:
                yield state
            heartbeat.check()
            client.stop()

    def refusal(self, name: str, entries: Entries) -> str:
        """Return the reason why a session is refused."""
        with self.control() as control:
            try:
                SessionClient(control, self._request(name, entries)).start(timeout=START_TIMEOUT)
            except CommandRejected as error:
                return str(error)
        raise AssertionError("the session was not refused")

    def _request(self, name: str, entries: Entries, since_seconds: int | None = None) -> SessionRequest:
        queues = {queue_id: {"queue_type": "SQS", **entry} for queue_id, entry in entries.items()}
        config = {"feature": {"split_queues": queues}}
        return SessionRequest(self.target, name, f"{name}@laptop", config, since_seconds)
