"""Builders of splits and observed states for tests."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from signalbox.queues import QueueName
from signalbox.splitting.control.reconcile import next_actions
from signalbox.splitting.model.actions import Action
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.observed_state import (
    Forwarder,
    ForwardingState,
    ObservedState,
    Sample,
    TargetState,
    TemporaryQueue,
    Timings,
)
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.split import Phase, Split, SplitQueue, SplitSession, Stage
from signalbox.splitting.model.target import Target

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
TIMINGS = Timings()
SETTLED = NOW - TIMINGS.settle
LONG_AGO = NOW - timedelta(hours=1)
MEMES, ORDERS = QueueName("memes"), QueueName("orders.fifo")
ANN, BOB = SessionId("ann"), SessionId("bob")
ON, OFF, ABSENT = ForwardingState.ON, ForwardingState.OFF, ForwardingState.ABSENT


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def session(name: SessionId = ANN, phase: Phase = Phase.READY, *originals: QueueName, **fields: object) -> SplitSession:
    originals = originals or (MEMES,)
    effective = None if phase is Phase.STARTING else LONG_AGO
    found = SplitSession(
        session_id=name,
        owner="Ann",
        config="{}",
        started_at=LONG_AGO,
        heartbeat_at=NOW,
        phase=phase,
        since=LONG_AGO,
        queues={original: QueueName(f"{name}-{original}") for original in originals},
        stolen=frozenset(originals),
        effective_at=effective,
    )
    return replace(found, **fields)


def split(stage: Stage, *sessions: SplitSession, originals: Sequence[QueueName] = (MEMES,), **fields: object) -> Split:
    queues = tuple(
        SplitQueue(QueueId(one), one, QueueName(f"deployed-{one}"), timedelta(seconds=30)) for one in originals
    )
    found = Split(Target.parse("lambda/meme-app"), queues, sessions, stage, LONG_AGO, timedelta(seconds=120))
    return replace(found, **{"was_split": stage is not Stage.STARTING, **fields})


def holding(waiting: int = 0, in_flight: int = 0, *, created_at: datetime = LONG_AGO) -> TemporaryQueue:
    """Return a queue whose counters have not changed for two minutes."""
    return TemporaryQueue(created_at, tuple(Sample(ago(120 - 30 * n), waiting, in_flight) for n in range(5)))


def observed(target: TargetState, forwarder: Forwarder | None = None, **queues: TemporaryQueue) -> ObservedState:
    named = {QueueName(name.replace("_", "-").replace("-fifo", ".fifo")): queue for name, queue in queues.items()}
    forwarders = dict.fromkeys((MEMES, ORDERS), forwarder) if forwarder else {}
    return ObservedState(target, forwarders, named)


def actions(record: Split, found: ObservedState) -> list[Action]:
    return list(next_actions(record, found, now=NOW, timings=TIMINGS))


def on(since: datetime = LONG_AGO, *unfinished: datetime) -> Forwarder:
    return Forwarder(ON, since, unfinished)


def off(since: datetime = LONG_AGO, *unfinished: datetime) -> Forwarder:
    return Forwarder(OFF, since, unfinished, stop_requested_at=since)


def ending(name: SessionId = ANN, *originals: QueueName, since: datetime = LONG_AGO, **fields: object) -> SplitSession:
    return session(name, Phase.ENDING, *originals, since=since, **fields)
