"""What a split's record says of one of its queues, with the sessions' filters read and ready to be asked."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from signalbox.errors import RejectedError
from signalbox.messages import Message
from signalbox.queues import QueueName
from signalbox.sending import Delivery
from signalbox.splitting.forwarding.filters import Compiler
from signalbox.splitting.forwarding.forwarding import deliveries
from signalbox.splitting.forwarding.matching import Claim, Decision, SessionId, decide
from signalbox.splitting.model.ports import StoredSplit
from signalbox.splitting.model.session_config import SessionConfig, parse_mirrord_file
from signalbox.splitting.model.split import Phase, Session, Split, SplitQueue

TOO_SLOW = "filter too slow: "
"""How the reason begins with which a session is ended whose filter takes too long; `Route` knows it by that."""

Configs = Mapping[str, SessionConfig | RejectedError]


@dataclass(frozen=True, slots=True)
class Route:
    """The record of a split, as it was read at a moment, and what its sessions claim of one of its queues.

    `unreadable` says of sessions why their filters cannot be read, which were when they started: by other code.
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
        compiler: Compiler,
        read_at: datetime,
        settle: timedelta,
        known: Configs,
    ) -> "Route":
        """Return the route of a record; what is `known` of its sessions' filters is not compiled again."""
        sessions = stored.split.sessions
        texts = {session.config for session in sessions}
        configs = {text: known[text] if text in known else config_of(text, compiler) for text in texts}
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

    def decision(self, message: Message, *, received_at: datetime, without: Collection[SessionId] = ()) -> Decision:
        """Return who gets a message that was received then for the first time; some sessions are not asked."""
        routed = self.split.routed(self.original, received_at=received_at)
        if self.queue.is_fifo:
            routed = tuple(one for one in routed if not self._is_silent(one, received_at))
        claims = [
            self.claims[one.session_id]
            for one in routed
            if one.session_id in self.claims and one.session_id not in without
        ]
        return decide(message, claims, sns=self.queue.sns)

    def deliveries(self, message: Message, decision: Decision) -> tuple[Delivery, ...]:
        """Return where a message goes."""
        names = {session.session_id: session.queues[self.original] for session in self.split.sessions}
        return deliveries(message, decision, deployed=self.queue.deployed, sessions=names)

    def _is_silent(self, session: Session, received_at: datetime) -> bool:
        """Say whether a session of a FIFO queue, ended because its filter is too slow, is not asked any more.

        What was first received before all functions knew is still asked about: another answer than at the first try
        could give a message to two.
        """
        is_slow = session.phase is Phase.ENDING and (session.reason or "").startswith(TOO_SLOW)
        return is_slow and received_at >= session.since + self.settle


def config_of(text: str, compiler: Compiler) -> SessionConfig | RejectedError:
    """Return what a session asked for, from the text in its record, or why that cannot be read."""
    try:
        return parse_mirrord_file(json.loads(text), compiler)
    except ValueError:
        return RejectedError("the text is not JSON")
    except RejectedError as error:
        return error
