"""The history events of splitting."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from signalbox.messages import Message
from signalbox.splitting.control.admission import MAXIMUM_MIRRORS
from signalbox.splitting.model import events
from signalbox.splitting.model.claims import Decision, FilterOutcome, Mode, SessionId, SessionVerdict
from signalbox.splitting.model.split import Stage
from tests.unit.splitting.control.observed_states import ANN, BOB, MEMES, NOW, session, split

EVE = SessionId("eve")
SPLIT = split(Stage.SPLIT, session(), session(BOB, owner="Bob"), session(EVE))
(QUEUE,) = SPLIT.queues
SENT = NOW - timedelta(milliseconds=250)
MESSAGE = Message.parse(
    {
        "MessageId": "m1",
        "Body": "secret",
        "Attributes": {"SentTimestamp": str(round(SENT.timestamp() * 1000)), "ApproximateReceiveCount": "2"},
        "MessageAttributes": {"color": {"DataType": "String", "StringValue": "crimson"}},
    }
)


def verdict(
    name: SessionId, *, mode: Mode = Mode.STEAL, outcome: FilterOutcome = FilterOutcome.MATCH
) -> SessionVerdict:
    return SessionVerdict(name, mode, outcome, f"why {name}")


STOLEN = Decision(ANN, (EVE,), (verdict(ANN), verdict(EVE, mode=Mode.MIRROR)))
MISSED = Decision(None, (), (verdict(ANN, outcome=FilterOutcome.NO_MATCH),))


def test_a_resent_message_has_the_same_event_id():
    first, copy = events.routed(MESSAGE, STOLEN, split=SPLIT, queue=QUEUE, at=NOW)
    again, _ = events.routed(MESSAGE, STOLEN, split=SPLIT, queue=QUEUE, at=NOW + timedelta(seconds=9))
    (elsewhere,) = events.routed(MESSAGE, MISSED, split=SPLIT, queue=QUEUE, at=NOW)

    assert first.event_id == again.event_id
    assert len({first.event_id, copy.event_id, elsewhere.event_id}) == 3


def test_a_message_without_system_attributes_has_neither_latency_nor_attempt():
    (event,) = events.routed(replace(MESSAGE, system_attributes={}), MISSED, split=SPLIT, queue=QUEUE, at=NOW)

    assert (event.latency_ms, event.attempt) == (None, None)


def test_a_long_filter_makes_no_long_event():
    long = SessionVerdict(ANN, Mode.STEAL, FilterOutcome.MATCH, "matches '" + "'" * 9_900)

    (event,) = events.routed(MESSAGE, Decision(ANN, (), (long,)), split=SPLIT, queue=QUEUE, at=NOW)

    assert event.labels["verdict"] == long.reason[:500]


def test_a_message_with_the_most_copies_makes_less_history_than_a_publication_for_as_many_queues():
    names = [SessionId(f"session-{number}") for number in range(MAXIMUM_MIRRORS)]
    copies = split(Stage.SPLIT, *(session(name, owner="ann@laptop") for name in names))
    long = [SessionVerdict(name, Mode.MIRROR, FilterOutcome.MATCH, "matches '" + "x" * 9_900) for name in names]

    found = events.routed(MESSAGE, Decision(None, tuple(names), tuple(long)), split=copies, queue=QUEUE, at=NOW)

    assert len(found) == 1 + MAXIMUM_MIRRORS
    assert sum(len(event.to_json()) for event in found) < 25_000


def test_no_event_contains_a_body_or_attributes():
    recorded = [
        *events.routed(MESSAGE, STOLEN, split=SPLIT, queue=QUEUE, at=NOW),
        events.returned(MESSAGE, STOLEN, left_by=BOB, split=SPLIT, queue=QUEUE, at=NOW),
        events.dead_letter(MESSAGE, target=SPLIT.target, original=MEMES, reason="refused", at=NOW),
    ]

    assert not any(word in event.to_json() for event in recorded for word in ("secret", "color", "crimson"))


def test_a_session_event_is_identified_by_name_and_start():
    began = datetime(2026, 11, 21, 11, 59, 57, 500_000, tzinfo=UTC)
    found = session(started_at=began, reason="stopped")

    ready = events.session(found, "ready", target=SPLIT.target, at=NOW)
    ended = events.session(found, "ended", target=SPLIT.target, at=NOW)
    later = events.session(replace(found, started_at=NOW), "ended", target=SPLIT.target, at=NOW)

    assert (ready.kind, ready.outcome, ready.latency_ms, ready.reason) == ("session", "ready", 2500, "stopped")
    assert ready.labels == {"target": "lambda/meme-app", "session": "ann", "owner": "Ann"}
    assert len({ready.event_id, ended.event_id, later.event_id}) == 3
