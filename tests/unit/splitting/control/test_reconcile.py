"""The next actions while a split starts and runs."""

from datetime import timedelta

import pytest

from signalbox.queues import QueueName
from signalbox.splitting.control.reconcile import after_refusal, is_at_rest
from signalbox.splitting.model.actions import (
    CreateQueue,
    DeleteTemporaryQueue,
    Effect,
    ForgetSession,
    ForgetSplit,
    MoveSession,
    MoveSplit,
    ReturnMessages,
    StartForwarding,
    StopForwarding,
    SwitchTarget,
    SwitchTargetBack,
)
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.observed_state import Sample, TargetState, TemporaryQueue, is_empty
from signalbox.splitting.model.split import Phase, Stage
from tests.unit.splitting.control.observed_states import (
    ANN,
    BOB,
    LONG_AGO,
    MEMES,
    NOW,
    ORDERS,
    TIMINGS,
    actions,
    ago,
    ending,
    holding,
    observed,
    off,
    on,
    session,
    split,
)


def test_a_start_creates_all_queues_first():
    starting = session(phase=Phase.STARTING, since=NOW)
    record = split(Stage.STARTING, starting, since=NOW)

    assert actions(record, observed(TargetState.ORIGINAL)) == [
        CreateQueue("ann-memes", MEMES, ANN),
        CreateQueue("deployed-memes", MEMES),
    ]


@pytest.mark.parametrize("target", [TargetState.ORIGINAL, TargetState.MIXED])
def test_the_target_is_switched_when_its_queues_are_usable(target):
    record = split(Stage.STARTING, session(phase=Phase.STARTING, since=NOW), since=NOW)
    new = {"ann_memes": holding(), "deployed_memes": holding(created_at=ago(0.5))}
    usable = new | {"deployed_memes": holding(created_at=ago(1))}

    assert actions(record, observed(target, **new)) == []
    assert actions(record, observed(target, **usable)) == [SwitchTarget()]


def test_forwarding_starts_only_when_the_target_reads_its_temporary_queue():
    starting = session(phase=Phase.STARTING, since=NOW)
    queues = {"ann_memes": holding(), "deployed_memes": holding()}

    assert actions(split(Stage.STARTING, starting, since=NOW), observed(TargetState.CHANGING, **queues)) == []
    assert actions(split(Stage.STARTING, starting, since=NOW), observed(TargetState.TEMPORARY, **queues)) == [
        MoveSplit(Stage.SPLIT)
    ]
    assert actions(split(Stage.SPLIT, starting, since=NOW), observed(TargetState.TEMPORARY, **queues)) == [
        MoveSession(ANN, Phase.MATCHING, effective_at=NOW)
    ]
    matching = session(phase=Phase.MATCHING)
    assert actions(split(Stage.SPLIT, matching), observed(TargetState.TEMPORARY, **queues)) == [StartForwarding(MEMES)]
    assert actions(split(Stage.SPLIT, matching), observed(TargetState.TEMPORARY, on(), **queues)) == [
        MoveSession(ANN, Phase.READY)
    ]


@pytest.mark.parametrize(
    ("others", "forwarder", "settle"),
    [
        ((), None, timedelta(0)),
        ((), off(), timedelta(0)),
        ((), on(), TIMINGS.settle),
        ((session(BOB, stolen=frozenset()),), on(), TIMINGS.settle),
    ],
)
def test_an_exclusive_session_is_ready_when_nothing_is_forwarded_without_it_any_more(others, forwarder, settle):
    """For example while another session mirrors the queue."""
    starting = session(ANN, Phase.STARTING, since=NOW, exclusive=frozenset({MEMES}))
    queues = {name: holding() for name in ("deployed_memes", "ann_memes", "bob_memes")}
    found = observed(TargetState.TEMPORARY, forwarder, **queues)

    moved = [one for one in actions(split(Stage.SPLIT, starting, *others), found) if isinstance(one, MoveSession)]

    assert moved == [MoveSession(ANN, Phase.MATCHING, effective_at=NOW + settle)]


def test_filters_on_a_fifo_queue_apply_after_the_settle_time():
    """Messages received earlier are matched against the sessions of that time at each redelivery."""
    starting = session(ANN, Phase.STARTING, ORDERS, since=NOW)
    queues = {"ann_orders_fifo": holding(), "deployed_orders_fifo": holding()}
    record = split(Stage.SPLIT, starting, originals=[ORDERS], since=NOW)
    effective_at = NOW + TIMINGS.settle

    assert MoveSession(ANN, Phase.MATCHING, effective_at=effective_at) in actions(
        record, observed(TargetState.TEMPORARY, on(), **queues)
    )
    matching = session(ANN, Phase.MATCHING, ORDERS, effective_at=effective_at)
    assert (
        actions(split(Stage.SPLIT, matching, originals=[ORDERS]), observed(TargetState.TEMPORARY, on(), **queues)) == []
    )
    assert not matching.counts_for(ORDERS, NOW)
    assert matching.counts_for(ORDERS, effective_at)


@pytest.mark.parametrize(
    ("forwarder", "others", "wait"),
    [
        pytest.param(None, [], timedelta(0), id="never forwarded"),
        pytest.param(off(), [], timedelta(0), id="not forwarded any more"),
        pytest.param(off(ago(59)), [], TIMINGS.settle, id="calls may still run"),
        pytest.param(on(), [], TIMINGS.settle, id="forwarded"),
        pytest.param(None, [session(BOB, Phase.MATCHING, ORDERS)], TIMINGS.settle, id="about to be forwarded"),
    ],
)
def test_filters_on_a_fifo_queue_apply_at_once_while_no_call_forwards_by_an_older_record(forwarder, others, wait):
    record = split(Stage.SPLIT, session(ANN, Phase.STARTING, ORDERS, since=NOW), *others, originals=[ORDERS], since=NOW)
    queues = {f"{name}_orders_fifo": holding() for name in ("ann", "bob", "deployed")}

    assert MoveSession(ANN, Phase.MATCHING, effective_at=NOW + wait) in actions(
        record, observed(TargetState.TEMPORARY, forwarder, **queues)
    )


def test_a_second_session_does_not_touch_the_target():
    """Wire page, A.4 step 2."""
    record = split(Stage.SPLIT, session(), session(BOB, Phase.STARTING, since=NOW))
    found = observed(TargetState.TEMPORARY, on(), ann_memes=holding(), deployed_memes=holding())

    assert actions(record, found) == [CreateQueue("bob-memes", MEMES, BOB)]
    assert not is_at_rest(record)


def test_a_split_with_ready_sessions_is_at_rest():
    record = split(Stage.SPLIT, session())

    assert actions(record, observed(TargetState.TEMPORARY, on(), ann_memes=holding(), deployed_memes=holding())) == []
    assert is_at_rest(record)


def test_a_split_without_sessions_is_not_at_rest():
    """A reconcile killed after the last session's end would otherwise leave it split."""
    assert not is_at_rest(split(Stage.SPLIT))


def test_a_redeployed_target_is_switched_again():
    found = observed(TargetState.ORIGINAL, on(), ann_memes=holding(), deployed_memes=holding())

    assert actions(split(Stage.SPLIT, session()), found) == [SwitchTarget()]


def test_a_target_that_does_not_switch_in_time_ends_the_sessions_with_the_reason():
    """Operator 3.118 and 3.107: everything is rolled back, and the user sees the cause."""
    record = split(Stage.STARTING, session(phase=Phase.STARTING, since=ago(121)), since=ago(121))
    queues = {"ann_memes": holding(), "deployed_memes": holding()}

    assert actions(record, observed(TargetState.CHANGING, **queues)) == [
        MoveSession(ANN, Phase.ENDING, "target lambda/meme-app did not read from its temporary queues after 120 s")
    ]
    assert actions(record, observed(TargetState.ORIGINAL)) == [
        MoveSession(ANN, Phase.ENDING, "its temporary queues were not there after 120 s")
    ]


def test_a_failed_start_is_undone_completely():
    """Operator 3.126: a failed session leaves nothing."""
    failed = ending(effective_at=None)
    queues = {"ann_memes": holding(), "deployed_memes": holding()}

    assert actions(split(Stage.STARTING, failed), observed(TargetState.MIXED, **queues)) == [
        DeleteTemporaryQueue("ann-memes")
    ]
    assert actions(split(Stage.STARTING, failed), observed(TargetState.MIXED, deployed_memes=holding())) == [
        ForgetSession(ANN)
    ]
    assert actions(split(Stage.STARTING), observed(TargetState.MIXED, deployed_memes=holding())) == [
        MoveSplit(Stage.RESTORING)
    ]
    restoring = split(Stage.RESTORING, was_split=False)
    assert actions(restoring, observed(TargetState.MIXED, deployed_memes=holding())) == [SwitchTargetBack()]
    assert actions(restoring, observed(TargetState.CHANGING, deployed_memes=holding())) == []
    assert actions(restoring, observed(TargetState.ORIGINAL, deployed_memes=holding())) == [MoveSplit(Stage.CLEANING)]
    cleaning = split(Stage.CLEANING, was_split=False)
    assert actions(cleaning, observed(TargetState.ORIGINAL, deployed_memes=holding())) == [
        DeleteTemporaryQueue("deployed-memes")
    ]
    assert actions(cleaning, observed(TargetState.ORIGINAL)) == [ForgetSplit()]


def test_a_session_without_heartbeats_ends():
    record = split(Stage.SPLIT, session(heartbeat_at=ago(61)), session(BOB))

    assert actions(record, observed(TargetState.TEMPORARY, on())) == [
        MoveSession(ANN, Phase.ENDING, "no sign of life since 2026-11-21T11:58:59+00:00")
    ]


def test_a_deleted_target_ends_its_sessions_and_is_not_switched_back():
    assert actions(split(Stage.SPLIT, session()), observed(TargetState.GONE, on())) == [
        MoveSession(ANN, Phase.ENDING, "target lambda/meme-app does not exist any more")
    ]
    assert actions(split(Stage.DRAINING), observed(TargetState.GONE, deployed_memes=holding(3))) == [
        MoveSplit(Stage.RESTORING)
    ]
    assert actions(split(Stage.RESTORING), observed(TargetState.GONE)) == [MoveSplit(Stage.CLEANING)]
    assert actions(split(Stage.CLEANING), observed(TargetState.GONE, deployed_memes=holding(3))) == [
        ReturnMessages("deployed-memes", MEMES, to_original=True)
    ]


@pytest.mark.parametrize(
    ("effect", "ends"),
    [
        (CreateQueue(QueueName("bob-memes"), MEMES, BOB), [BOB]),
        (CreateQueue(QueueName("deployed-memes"), MEMES), [ANN, BOB]),
        (SwitchTarget(), [ANN, BOB]),
        (StartForwarding(MEMES), [ANN, BOB]),
        (StopForwarding(MEMES), []),
        (SwitchTargetBack(), []),
        (DeleteTemporaryQueue(QueueName("ann-memes")), []),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_permanently_refused_effect_ends_the_sessions_that_need_it(effect: Effect, ends: list[SessionId]):
    """Operator 3.119 and 3.138: the text has the queue's name and AWS's message."""
    record = split(Stage.SPLIT, session(), session(BOB, Phase.STARTING), ending(SessionId("cyd")))

    assert after_refusal(record, effect, reason="AccessDenied: queue 'memes'") == tuple(
        MoveSession(one, Phase.ENDING, "AccessDenied: queue 'memes'") for one in ends
    )


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([], False),
        ([(0, 0)] * 2, False),
        ([(0, 0)] * 3, True),
        ([(0, 0), (0, 0), (1, 0)], False),
        ([(1, 0), (0, 0), (0, 0)], False),
        ([(0, 1), (0, 0), (0, 0), (0, 0)], True),
    ],
)
def test_a_queue_is_empty_after_enough_zero_samples(samples, expected):
    """Operator 3.128: three counters zero, repeated over time."""
    taken = tuple(Sample(ago(30 * (len(samples) - 1 - n)), *counts) for n, counts in enumerate(samples))

    assert is_empty(TemporaryQueue(LONG_AGO, taken), since=LONG_AGO, timings=TIMINGS) is expected
    assert not is_empty(TemporaryQueue(LONG_AGO, taken), since=ago(50), timings=TIMINGS)
