"""The recorder of events: history, telemetry and live counters."""

from dataclasses import replace
from datetime import timedelta

from signalbox.rendezvous.model.states import OfferState
from signalbox.rendezvous.reporting import events
from signalbox.rendezvous.reporting.event_recorder import MOST_COLLECTED, EventRecorder
from signalbox.rendezvous.wire.nat import Nat
from tests.fakes.rendezvous import START, MemoryClock, MemoryHistory, MemoryStatistics, MemoryTelemetry
from tests.unit.rendezvous.model.test_states import RECORD
from tests.unit.rendezvous.rules.services import ANSWER, OFFER, delivery, proxy

SECONDS_9 = timedelta(seconds=9)
SECRET_WORDS = ("v=0", "a=candidate", "8.8.4.4", "8.8.8.8")
ANSWERED = replace(
    RECORD, state=OfferState.ANSWERED, session_description=OFFER, reply=ANSWER, proxy_type="webext", matches=2
)


def recorder() -> EventRecorder:
    return EventRecorder(MemoryHistory(), MemoryStatistics(), MemoryTelemetry(), MemoryClock())


def poll_event(sid_hash: str = "s1", address_hash: str | None = "addr1", *, outcome: str = "idle", seconds: int = 0):
    at = START + timedelta(seconds=seconds)
    return events.proxy_poll(
        proxy(nat=Nat.UNRESTRICTED),
        outcome,
        at=at,
        sid_hash=sid_hash,
        client_address_hash=address_hash,
        country="CA",
    )


def test_an_event_is_written_once_and_counted() -> None:
    recording = recorder()

    recording.record([poll_event(), poll_event("s2", seconds=1)])

    counters = recording.statistics.counters(START.date())
    assert len(recording.history.events) == 2
    assert recording.telemetry.counted == [], "polls are too many for metrics"
    assert counters["poll|unrestricted|idle|standalone|with"] == 2
    assert counters["proxy|CA|unrestricted|standalone"] == 1


def test_events_are_written_at_once_after_a_pause_and_together_when_they_follow_one_another() -> None:
    recording = recorder()
    seen = []
    for seconds in (0, 1, 2, 10, 20):
        recording.clock.moment = START + timedelta(seconds=seconds)
        recording.record([poll_event(str(seconds))])
        seen.append(len(recording.history.events))

    assert seen == [1, 1, 1, 4, 5]


def test_many_events_are_written_before_the_time() -> None:
    recording = recorder()
    recording.record([poll_event()])

    recording.record([poll_event(str(number)) for number in range(MOST_COLLECTED - 1)])
    before = len(recording.history.events)
    recording.record([poll_event("last")])

    assert (before, len(recording.history.events)) == (1, MOST_COLLECTED + 1)


def test_the_end_of_an_instance_writes_what_it_has_collected() -> None:
    recording = recorder()
    recording.record([events.answer(ANSWERED, at=START)])
    recording.record([events.answer(ANSWERED, at=START)])

    recording.flush()

    assert len(recording.history.events) == len(recording.telemetry.counted) == 2


def test_without_events_nothing_is_written() -> None:
    recording = recorder()

    recording.record([])

    assert recording.history.events == []
    assert recording.statistics.counted == {}


def test_a_proxy_without_an_address_is_counted_as_a_poll_only() -> None:
    recording = recorder()

    recording.record([poll_event(address_hash=None)])

    assert "proxy|CA|unrestricted|standalone" not in recording.statistics.counters(START.date())


def test_events_of_two_days_count_on_their_own_days() -> None:
    recording = recorder()

    recording.record([poll_event(), poll_event(seconds=24 * 3600)])

    assert [day.day for day in recording.statistics.counted] == [21, 22]


def test_an_answer_event_has_its_latency_and_number_of_matches() -> None:
    event = events.answer(ANSWERED, at=START + SECONDS_9)

    assert (event.latency_ms, event.attempt, event.labels["proxy_type"]) == (9000, 2, "webext")


def test_no_event_contains_an_address_or_a_session_description() -> None:
    written = [
        events.offer(ANSWERED, "parked", at=START),
        events.duplicate_offer(delivery(), at=START),
        events.answer(replace(ANSWERED, proxy_type=None), at=START),
        events.timeout(ANSWERED, at=START),
        events.proxy_answer("success", at=START, sid_hash="s", record=ANSWERED),
        events.proxy_answer("client_gone", at=START, sid_hash="s", record=None),
        events.dead_letter("m", at=START, reason="ClientID is empty"),
        events.bad_input("http", at=START, request_id="r", reason="no supplied offer"),
        poll_event(),
    ]

    text = "".join(event.to_json() for event in written)

    assert not [word for word in SECRET_WORDS if word in text]


def test_the_same_occurrence_has_the_same_event_id() -> None:
    first, again = (events.timeout(ANSWERED, at=START + SECONDS_9 * n) for n in (1, 2))

    assert first.event_id == again.event_id
