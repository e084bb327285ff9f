"""The progress of a replay: the claim before a message is sent, and its handling by a retry."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.history.replay_state import (
    MAX_CLAIM_SIZE,
    MAX_LISTED_REFUSALS,
    InvalidReplay,
    RateLimit,
    ReplayId,
    ReplayProgress,
    ReplayState,
    SendResult,
    min_seconds,
    parse_rate,
    parse_replay_id,
)

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
PLANNED = ReplayProgress(
    ReplayId("again-1"), {"topics": "a.#"}, "snapshot 7", messages=3, size_bytes=30, planned_at=NOON
)


def test_a_settled_claim_is_counted_by_outcome_and_advances_the_position():
    claimed = PLANNED.claimed(["1", "2", "3"], at=NOON)

    settled = claimed.settled(SendResult(taken={"1": "new"}, refused={"2": "too long"}, doubtful=["3"]))

    assert claimed.state is ReplayState.SENDING
    assert (settled.position, settled.sent, settled.refused_count) == (3, 1, 1)
    assert (settled.refused, settled.doubtful, settled.last, settled.claim) == ({"2": "too long"}, ("3",), ("1",), None)
    assert settled.retained == {"2", "3"}


def test_a_retry_does_not_send_possibly_sent_messages():
    resumed = PLANNED.claimed(["1", "2"], at=NOON).resumed(now=NOON + timedelta(seconds=1), is_fifo=False)

    assert (resumed.claim, resumed.position, resumed.doubtful) == (None, 2, ("1", "2"))


@pytest.mark.parametrize(("seconds", "is_kept"), [(0, True), (269, True), (270, False)])
def test_a_retry_sends_a_claim_again_while_a_fifo_queue_deduplicates_it(seconds, is_kept):
    claimed = PLANNED.claimed(["1"], at=NOON)

    resumed = claimed.resumed(now=NOON + timedelta(seconds=seconds), is_fifo=True)

    assert (resumed == claimed, resumed.claim is not None) == (is_kept, is_kept)


def test_a_record_without_a_claim_is_resumed_unchanged():
    assert PLANNED.resumed(now=NOON, is_fifo=False) == PLANNED


def test_messages_sent_by_a_killed_run_are_kept_since_their_deletion_may_be_missing():
    killed = PLANNED.claimed(["1"], at=NOON).settled(SendResult(taken={"1": "new"})).claimed(["2"], at=NOON)

    resumed = killed.resumed(now=NOON, is_fifo=False).claimed(["3"], at=NOON).settled(SendResult(taken={"3": "new"}))

    assert (resumed.kept, resumed.last, resumed.doubtful) == (("1",), ("3",), ("2",))


def test_settling_no_claim_only_clears_the_last_sent_messages():
    assert PLANNED.settled(SendResult()) == PLANNED


def test_all_refused_messages_are_counted_and_a_limited_number_is_listed():
    many = {str(number): "no" for number in range(MAX_LISTED_REFUSALS + 1)}

    settled = PLANNED.claimed(list(many), at=NOON).settled(SendResult(refused=many))

    assert (len(settled.refused), settled.refused_count) == (MAX_LISTED_REFUSALS, MAX_LISTED_REFUSALS + 1)


@pytest.mark.parametrize(
    "progress",
    [
        PLANNED,
        PLANNED.claimed(["1"], at=NOON),
        PLANNED.claimed(["1", "2"], at=NOON).settled(SendResult(taken={"1": "new"}, doubtful=["2"])).finished(),
    ],
    ids=["planned", "claimed", "finished"],
)
def test_a_record_is_parsed_as_it_was_written(progress):
    assert ReplayProgress.parse(json.loads(json.dumps(progress.to_document()))) == progress


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"version": 9}, "the replay has version 9; expected 1"),
        ({"state": "gone"}, "cannot be read: ValueError.*gone"),
        ({"planned_at": "noon"}, "cannot be read: ValueError.*noon"),
        ({"claim": {}}, "cannot be read: KeyError.*ids"),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
def test_a_record_of_another_form_is_refused(change, problem):
    with pytest.raises(InvalidReplay, match=problem):
        ReplayProgress.parse(PLANNED.to_document() | change)


def test_the_rate_is_limited_since_the_start_and_not_between_bursts():
    pace = RateLimit(rate=50, started=100.0)

    assert pace.burst == 50
    assert pace.seconds_until_next(0, now=100.0) == 0
    assert pace.seconds_until_next(50, now=100.25) == 0.75
    assert pace.seconds_until_next(100, now=103.0) == 0


def test_the_size_of_a_claim_is_limited():
    assert RateLimit(rate=1_000, started=0).burst == MAX_CLAIM_SIZE


def test_the_shortest_duration_is_the_messages_divided_by_the_rate():
    assert [min_seconds(messages, 10) for messages in (0, 1, 10, 11)] == [0, 1, 1, 2]


@pytest.mark.parametrize("text", ["", "-a", "a b", "a/b", "é", "a" * 65])
def test_an_id_that_is_invalid_in_a_key_is_refused(text):
    with pytest.raises(InvalidReplay):
        parse_replay_id(text)


def test_a_readable_id_is_valid():
    assert parse_replay_id("2026-11-21_again") == "2026-11-21_again"


@pytest.mark.parametrize("text", ["", "0", "1001", "1.5", "-1", "٣", "9" * 5000])
def test_a_rate_is_a_whole_number_of_messages_a_second(text):
    with pytest.raises(InvalidReplay, match="1 to 1000"):
        parse_rate(text)


def test_the_maximum_rate_is_valid():
    assert parse_rate("1000") == 1_000
