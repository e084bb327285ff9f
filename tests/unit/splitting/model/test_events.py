"""The history events of splitting."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from signalbox.messages import Message
from signalbox.queues import QueueName
from signalbox.splitting.model import events
from signalbox.splitting.model.claims import Decision, Mode, Outcome, SessionId, SessionVerdict
from signalbox.splitting.model.split import Stage
from tests.unit.splitting.control.observed_states import ANN, BOB, MEMES, NOW, ORDERS, session, split

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


def verdict(name: SessionId, *, mode: Mode = Mode.STEAL, outcome: Outcome = Outcome.MATCH) -> SessionVerdict:
    return SessionVerdict(name, mode, outcome, f"why {name}")


STOLEN = Decision(ANN, (EVE,), (verdict(ANN), verdict(EVE, mode=Mode.MIRROR)))
MISSED = Decision(None, (), (verdict(ANN, outcome=Outcome.NO_MATCH),))


def test_a_routed_message_has_an_event_for_its_owner_and_each_copy():
    own, copy = events.routed(MESSAGE, STOLEN, split=SPLIT, queue=QUEUE, at=NOW)

    assert (own.capability, own.kind, own.outcome, own.occurred_at) == ("splitting", "routed", "session", NOW)
    assert (own.message_id, own.source, own.destination) == ("m1", "memes", "ann-memes")
    # The body, and the attribute's name, type and value.
    assert (own.latency_ms, own.size_bytes, own.attempt) == (250, len("secret" + "color" + "String" + "crimson"), 2)
    assert own.labels == {"target": "lambda/meme-app", "session": "ann", "owner": "Ann", "verdict": "why ann"}
    assert (copy.outcome, copy.destination, copy.labels["session"]) == ("copied", "eve-memes", "eve")
    assert copy.labels["verdict"] == "why eve"


def test_an_unclaimed_message_has_an_event_of_the_deployed_consumer():
    (event,) = events.routed(MESSAGE, MISSED, split=SPLIT, queue=QUEUE, at=NOW)

    assert (event.outcome, event.destination, event.labels) == (
        "deployed",
        "deployed-memes",
        {"target": "lambda/meme-app"},
    )


def test_a_resent_message_has_the_same_event_id():
    first, copy = events.routed(MESSAGE, STOLEN, split=SPLIT, queue=QUEUE, at=NOW)
    again, _ = events.routed(MESSAGE, STOLEN, split=SPLIT, queue=QUEUE, at=NOW + timedelta(seconds=9))
    (elsewhere,) = events.routed(MESSAGE, MISSED, split=SPLIT, queue=QUEUE, at=NOW)

    assert first.event_id == again.event_id
    assert len({first.event_id, copy.event_id, elsewhere.event_id}) == 3


def test_a_message_without_system_attributes_has_neither_latency_nor_attempt():
    (event,) = events.routed(replace(MESSAGE, system_attributes={}), MISSED, split=SPLIT, queue=QUEUE, at=NOW)

    assert (event.latency_ms, event.attempt) == (None, None)


def test_a_message_that_a_session_left_goes_to_another_one_or_to_the_deployed_consumer():
    heir = events.returned(MESSAGE, Decision(BOB, (), (verdict(BOB),)), left_by=ANN, split=SPLIT, queue=QUEUE, at=NOW)
    deployed = events.returned(MESSAGE, MISSED, left_by=ANN, split=SPLIT, queue=QUEUE, at=NOW)

    left = {"target": "lambda/meme-app", "session": "ann", "owner": "Ann"}
    assert (heir.kind, heir.outcome, heir.source, heir.destination) == ("returned", "session", "memes", "bob-memes")
    assert heir.labels == left | {"heir": "bob", "verdict": "why bob"}
    assert (deployed.outcome, deployed.destination, deployed.labels) == ("deployed", "deployed-memes", left)


def test_messages_of_the_deployed_consumer_return_to_the_original():
    event = events.returned(MESSAGE, None, left_by=None, split=SPLIT, queue=QUEUE, at=NOW)

    assert (event.outcome, event.source, event.destination) == ("original", "memes", "memes")
    assert event.labels == {"target": "lambda/meme-app"}


def test_a_dead_letter_has_its_reason():
    reason = "InvalidMessageContents: characters that are not allowed"
    event = events.dead_letter(MESSAGE, target=SPLIT.target, original=QueueName("memes"), reason=reason, at=NOW)

    assert (event.kind, event.outcome, event.reason, event.source) == ("dead_letter", "dead", reason, "memes")
    assert (event.event_id, event.destination) == ("dead_letter:m1:memes", None)


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


def test_the_events_of_an_exclusive_session_name_its_queues():
    exclusive = session(exclusive=frozenset({ORDERS, MEMES}))

    labels = [events.session(one, "ready", target=SPLIT.target, at=NOW).labels for one in (session(), exclusive)]

    assert [one.get("exclusive") for one in labels] == [None, f"{MEMES},{ORDERS}"]
