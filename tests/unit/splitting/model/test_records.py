"""The JSON form of a split's record and of its samples."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.queues import QueueName
from signalbox.splitting.control.admission import MAXIMUM_TEMPORARY_QUEUES
from signalbox.splitting.model.observed_state import Sample, TemporaryQueue, Timings, is_empty
from signalbox.splitting.model.records import (
    MAXIMUM_BYTES,
    MAXIMUM_SAMPLES,
    UnreadableRecord,
    read_record,
    read_samples,
    record_text,
    samples_text,
    with_samples,
)
from signalbox.splitting.model.split import Replay, Stage
from tests.unit.splitting.control.observed_states import BOB, MEMES, NOW, ORDERS, ago, ending, session, split

SECOND = timedelta(seconds=1)
TIMINGS = Timings(empty_samples=3, empty_for=timedelta(seconds=60))
RECORD = split(Stage.SPLIT, session(), ending(BOB, reason="stopped"), originals=(MEMES, ORDERS))

moments = st.timedeltas(timedelta(days=-2000), timedelta(days=5000)).map(NOW.__add__)
names = st.text(min_size=1, max_size=8).map(QueueName)


def test_reading_is_the_inverse_of_writing():
    (queue, other), (first, last) = RECORD.queues, RECORD.sessions
    replay = Replay(since=NOW, until=NOW + SECOND / 3, positions={MEMES: "7"}, sent=1, skipped=2, finished_at=NOW)
    full = replace(
        RECORD,
        queues=(replace(queue, sns=True, tags=(("a", "b"),), s3_event=True, is_kept=True), other),
        sessions=(
            replace(
                first, effective_at=None, exclusive=frozenset({MEMES}), mirrored=frozenset({ORDERS}), replay=replay
            ),
            last,
        ),
        drain_timeout=SECOND / 2,
    )

    assert [read_record(record_text(one)) for one in (RECORD, full)] == [RECORD, full]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("not JSON", "JSONDecodeError"),
        ("[]", "TypeError"),
        ("{}", "record_version"),
        ('{"record_version":2}', "version 2"),
        ('{"record_version":1}', "KeyError"),
        (record_text(RECORD).replace('"stage":"split"', '"stage":"flying"'), "flying"),
        (record_text(RECORD).replace("lambda/meme-app", "pod/meme-app"), "Kubernetes"),
        (record_text(RECORD).replace('"tags":[]', '"tags":7'), "TypeError"),
        (record_text(RECORD).replace('"queues":{', '"queues":7,"were":{'), "TypeError"),
    ],
    ids=["no-json", "list", "empty", "newer", "incomplete", "stage", "target", "tags", "queues"],
)
def test_a_record_of_another_form_is_not_read_partially(text, reason):
    with pytest.raises(UnreadableRecord, match=reason):
        read_record(text)


def sample(seconds_ago: float, waiting: int = 0, in_flight: int = 0) -> Sample:
    return Sample(ago(seconds_ago), waiting, in_flight)


samples = st.lists(st.builds(Sample, moments, st.integers(0, 9), st.integers(0, 9)), max_size=5).map(tuple)


@given(st.dictionaries(names, samples, max_size=3))
def test_samples_keep_their_microseconds(found):
    assert read_samples(samples_text(found)) == found


def kept(*found: Sample) -> tuple[Sample, ...]:
    return with_samples({MEMES: found[:-1]}, {MEMES: found[-1]}, timings=TIMINGS)[MEMES]


def test_zero_samples_are_kept_for_as_long_as_emptiness_needs_them():
    zeros = [sample(seconds) for seconds in (120, 90, 61, 30, 0)]

    assert kept(*zeros) == tuple(zeros[2:])


def test_too_few_zero_samples_are_all_kept():
    zeros = [sample(seconds) for seconds in (600, 300, 0)]

    assert kept(*zeros) == tuple(zeros)


def test_samples_before_the_last_message_are_dropped():
    assert kept(sample(20), sample(10, waiting=1), sample(5), sample(0)) == (sample(5), sample(0))
    jobs = (sample(5, in_flight=1), sample(0, in_flight=1))
    assert kept(sample(10, waiting=1), *jobs) == jobs
    held = [sample(seconds, waiting=1, in_flight=1) for seconds in (50, 20, 0)]
    assert kept(*held) == (held[0], held[-1])
    assert kept(held[0], sample(20, waiting=1), held[-1]) == (held[-1],)
    assert kept(sample(50, waiting=2, in_flight=1), *held[1:]) == tuple(held[1:])  # one was returned meanwhile
    assert kept(sample(61, waiting=1, in_flight=1), held[-1]) == (held[-1],)  # nothing is known of the time between
    a_job_between = (sample(2), sample(1), sample(0.5, in_flight=1), sample(0))
    assert kept(*a_job_between) == a_job_between
    assert kept(sample(20), sample(10, in_flight=1), sample(0, waiting=2)) == (sample(0, waiting=2),)
    assert kept(sample(10), sample(0, waiting=2)) == (sample(0, waiting=2),)


def test_a_queue_without_new_samples_is_dropped_when_a_queue_could_be_found_empty_without_them():
    known = {MEMES: (sample(60),), ORDERS: (sample(61),), QueueName("never"): ()}

    found = with_samples(known, {QueueName("new"): sample(0)}, timings=TIMINGS)

    assert found == {MEMES: (sample(60),), QueueName("new"): (sample(0),)}
    assert with_samples({}, {}, timings=TIMINGS) == {}


def test_frequent_samples_are_as_few_as_emptiness_needs():
    known, first_empty = {}, None
    for seconds in range(600):
        found = Sample(NOW + seconds * SECOND / 5, 0, 0)
        known = with_samples(known, {MEMES: found}, timings=TIMINGS)
        if is_empty(TemporaryQueue(NOW, known[MEMES]), since=NOW, timings=TIMINGS):
            first_empty = first_empty or found.at

    assert first_empty == NOW + TIMINGS.empty_for
    assert len(known[MEMES]) <= MAXIMUM_SAMPLES + 2
    assert len(samples_text({QueueName("q" * 80): known[MEMES]})) * MAXIMUM_TEMPORARY_QUEUES < MAXIMUM_BYTES


@given(
    st.lists(st.tuples(st.integers(1, 40), *[st.sampled_from([0, 0, 0, 0, 1])] * 2), min_size=1, max_size=30),
    st.integers(0, 400),
)
def test_dropped_samples_never_change_the_check_for_emptiness(steps, since):
    at, everything, known = NOW, [], {}
    for seconds, waiting, in_flight in steps:
        at += seconds * SECOND
        everything.append(Sample(at, waiting, in_flight))
        known = with_samples(known, {MEMES: everything[-1]}, timings=TIMINGS)
        pair = [TemporaryQueue(NOW, found) for found in (tuple(everything), known[MEMES])]

        verdicts = [is_empty(one, since=NOW + since * SECOND, timings=TIMINGS) for one in pair]

        assert verdicts[0] == verdicts[1]
        assert pair[0].has_waiting == pair[1].has_waiting


def test_a_record_may_have_times_in_another_zone():
    text = record_text(RECORD).replace(RECORD.since.isoformat(), "2026-11-21T12:00:00+01:00")

    assert read_record(text) == replace(
        RECORD,
        since=NOW - timedelta(hours=1),
        sessions=tuple(
            replace(one, **{name: NOW - timedelta(hours=1) for name in ("started_at", "since", "effective_at")})
            for one in RECORD.sessions
        ),
    )
