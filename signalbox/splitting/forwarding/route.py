"""Routes: a split's record for one of its queues, with the compiled filters of its sessions."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from signalbox.errors import RejectedError
from signalbox.messages import Message
from signalbox.queues import QueueName
from signalbox.sending import Delivery
from signalbox.splitting.forwarding.deliveries import deliveries
from signalbox.splitting.forwarding.filter_budget import FilterBudget
from signalbox.splitting.forwarding.matching import decide
from signalbox.splitting.model.claims import Claim, Decision, SessionId
from signalbox.splitting.model.s3_objects import BatchMetadata, ObjectMetadata
from signalbox.splitting.model.session_config import SessionConfig, parse_mirrord_file
from signalbox.splitting.model.split import Phase, Split, SplitQueue, SplitSession
from signalbox.splitting.ports import StoredSplit

FILTER_STOPPED = "filter stopped: "
"""The start of the reason with which a session with a stopped filter ends; `Route` recognises it by this prefix."""

Configs = Mapping[str, SessionConfig | RejectedError]


@dataclass(frozen=True, slots=True)
class Route:
    """A split's record as read at `read_at`, with its sessions' claims on one queue.

    `unreadable` has a reason for each session whose filters this version cannot read, although the version that started
    the session could.
    """

    stored: StoredSplit
    queue: SplitQueue
    read_at: datetime
    settle: timedelta
    configs: Configs
    claims: Mapping[SessionId, Claim]
    unreadable: Mapping[SessionId, str]

    @classmethod
    def of(
        cls,
        stored: StoredSplit,
        queue: SplitQueue,
        *,
        budget: FilterBudget,
        read_at: datetime,
        settle: timedelta,
        known: Configs,
    ) -> "Route":
        """Return the route of a record; configs in `known` are not compiled again."""
        sessions = stored.split.sessions
        configs: dict[str, SessionConfig | RejectedError] = {}
        for session in sessions:
            text = session.config
            if text not in configs:
                configs[text] = known[text] if text in known else stored_config(text, budget, session.session_id)
        claims = {}
        unreadable = {}
        for session in sessions:
            config = configs[session.config]
            if isinstance(config, SessionConfig):
                claims[session.session_id] = config.claim(session.session_id, queue.queue_id)
            else:
                unreadable[session.session_id] = f"filters cannot be read: {config}"
        return cls(stored, queue, read_at, settle, configs, claims, unreadable)

    @property
    def split(self) -> Split:
        """Return the record."""
        return self.stored.split

    @property
    def original(self) -> QueueName:
        """Return the queue whose messages are forwarded."""
        return self.queue.original

    def metadata(self, messages: Sequence[Message], port: ObjectMetadata | None) -> BatchMetadata | None:
        """Return the metadata of a batch of S3 event notifications; None for other queues."""
        return BatchMetadata(messages, self.queue.sns, port) if self.queue.s3_event else None

    def decision(
        self,
        message: Message,
        *,
        received_at: datetime,
        without: Collection[SessionId] = (),
        metadata: BatchMetadata | None = None,
        budget: FilterBudget,
    ) -> Decision:
        """Return the routing of a message first received at `received_at`; sessions in `without` are skipped."""
        routed = self.split.routed(self.original, received_at=received_at)
        if self.queue.is_fifo:
            routed = tuple(one for one in routed if not self._is_silent(one, received_at))
        claims = [
            self.claims[one.session_id]
            for one in routed
            if one.session_id in self.claims and one.session_id not in without
        ]
        return decide(message, claims, sns=self.queue.sns, metadata=metadata, budget=budget)

    def queue_of(self, session_id: SessionId) -> QueueName:
        """Return a session's temporary queue. Raises `StopIteration` for an unknown session."""
        return next(one.queues[self.original] for one in self.split.sessions if one.session_id == session_id)

    def deliveries(self, message: Message, decision: Decision) -> tuple[Delivery, ...]:
        """Return the deliveries of a message."""
        names = {session.session_id: session.queues[self.original] for session in self.split.sessions}
        return deliveries(message, decision, deployed=self.queue.deployed, sessions=names)

    def _is_silent(self, session: SplitSession, received_at: datetime) -> bool:
        """Return whether a session whose stopped filter ended it is skipped for a message of a FIFO queue.

        A message that was first received before all functions had the new record is still evaluated: a different answer
        than at the first attempt could send it to two sessions.
        """
        is_stopped = session.phase is Phase.ENDING and (session.reason or "").startswith(FILTER_STOPPED)
        return is_stopped and received_at >= session.since + self.settle


def stored_config(text: str, budget: FilterBudget, session_id: SessionId) -> SessionConfig | RejectedError:
    """Return the config in a session's record, or the error for which it cannot be read."""
    try:
        return budget.within(session_id, lambda: parse_mirrord_file(json.loads(text), budget.compiler))
    except ValueError:
        return RejectedError("the text is not JSON")
    except RejectedError as error:
        return error
