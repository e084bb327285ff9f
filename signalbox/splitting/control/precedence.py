"""Earlier sessions with the same filter: they receive the messages that a later session claims, too."""

import json
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from signalbox.splitting.model.claims import Mode
from signalbox.splitting.model.session_config import EVERY_QUEUE, QueueId
from signalbox.splitting.model.split import Split, SplitSession


def precedence_notes(split: Split, session: SplitSession) -> Iterator[str]:
    """Yield a note for each queue whose messages an earlier session with the same filter receives first."""
    for queue in split.queues if session in split.live else ():
        entries = _entries(session.config, queue.queue_id)
        earlier = (one for one in _earlier(split, session) if _entries(one.config, queue.queue_id) == entries)
        first = next(earlier, None)
        if first is not None and any(entry.get("queue_mode") != Mode.MIRROR for entry in entries):
            yield (
                f"{queue.queue_id}: session {first.session_id!r} of {first.owner} has the same filter and receives the "
                "messages first"
            )


def _earlier(split: Split, session: SplitSession) -> Iterator[SplitSession]:
    return takewhile(lambda one: one.session_id != session.session_id, split.live)


def _entries(config: str, queue_id: QueueId) -> list[Mapping[str, object]]:
    """Return the entries of a stored config for a queue id, else those for every queue."""
    queues: Any = json.loads(config)["feature"]["split_queues"]  # as the start of a session stores it
    listed = [(entry["queue_id"], entry) for entry in queues] if isinstance(queues, list) else list(queues.items())
    own, default = ([entry for name, entry in listed if name == wanted] for wanted in (queue_id, EVERY_QUEUE))
    return own or default
