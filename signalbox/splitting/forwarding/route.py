"""Routes: a split's record for one of its queues, with the compiled filters of its sessions."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from signalbox.errors import RejectedError
from signalbox.messages import Message
from signalbox.queues import QueueName
from signalbox.splitting.forwarding.filter_budget import FilterBudget
from signalbox.splitting.model.claims import Claim, SessionId
from signalbox.splitting.model.s3_objects import BatchMetadata, ObjectMetadata
from signalbox.splitting.model.session_config import SessionConfig, parse_mirrord_file
from signalbox.splitting.model.split import Split, SplitQueue
from signalbox.splitting.ports import StoredSplit

FILTER_STOPPED = "filter stopped: "
"""The start of the reason with which a session with a stopped filter ends; the decider recognises it."""

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

    @property
    def session_queues(self) -> Mapping[SessionId, QueueName]:
        """Return each session's temporary queue."""
        return {session.session_id: session.queues[self.original] for session in self.split.sessions}


def stored_config(text: str, budget: FilterBudget, session_id: SessionId) -> SessionConfig | RejectedError:
    """Return the config in a session's record, or the error for which it cannot be read."""
    try:
        return budget.within(session_id, lambda: parse_mirrord_file(json.loads(text), budget.compiler))
    except ValueError:
        return RejectedError("the text is not JSON")
    except RejectedError as error:
        return error
