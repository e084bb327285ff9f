"""The next actions while sessions and splits end."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from signalbox.splitting.model.actions import (
    Action,
    CloseQueue,
    DeleteTemporaryQueue,
    ForgetSession,
    ForgetSplit,
    MoveSplit,
    RemoveForwarding,
    ReturnMessages,
    StartForwarding,
    StopForwarding,
    SwitchTargetBack,
)
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.observed_state import (
    Forwarder,
    ForwardingState,
    QueueUse,
    Sample,
    TargetState,
    TemporaryQueue,
)
from signalbox.splitting.model.split import Phase, Split, SplitSession, Stage
from tests.unit.splitting.control.observed_states import (
    ANN,
    BOB,
    LONG_AGO,
    MEMES,
    NOW,
    OFF,
    ON,
    ORDERS,
    SETTLED,
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

ZERO = Sample(NOW, 0, 0)


def with_use(queue: TemporaryQueue, use: QueueUse | None) -> TemporaryQueue:
    return replace(queue, use=use)


@pytest.mark.parametrize(
    ("since", "queue", "expected"),
    [
        pytest.param(ago(59), holding(3), [], id="functions may still work by the older record"),
        pytest.param(LONG_AGO, holding(3), [ReturnMessages("ann-memes", MEMES)], id="messages are returned"),
        pytest.param(LONG_AGO, holding(0, 1), [], id="what is in flight is waited for"),
        pytest.param(LONG_AGO, TemporaryQueue(LONG_AGO), [], id="nothing is known yet"),
        pytest.param(LONG_AGO, holding(0), [DeleteTemporaryQueue("ann-memes")], id="empty for a while"),
        pytest.param(ago(100), holding(0), [], id="empty, but not for long since"),
    ],
)
def test_a_session_ends_when_its_messages_are_returned(since, queue, expected):
    record = split(Stage.SPLIT, ending(since=since), session(BOB))
    found = observed(TargetState.TEMPORARY, on(), ann_memes=queue, bob_memes=holding(), deployed_memes=holding())

    assert actions(record, found) == expected


def test_a_queue_of_copies_is_deleted_and_a_session_without_queues_removed():
    others = {"bob_memes": holding(), "deployed_memes": holding()}

    assert actions(split(Stage.SPLIT, ending(), session(BOB)), observed(TargetState.TEMPORARY, on(), **others)) == [
        ForgetSession(ANN)
    ]
    copies = ending(stolen=frozenset())
    assert actions(
        split(Stage.SPLIT, copies, session(BOB)), observed(TargetState.TEMPORARY, on(), ann_memes=holding(9), **others)
    ) == [DeleteTemporaryQueue("ann-memes")]


def fifo(*sessions: SplitSession) -> Split:
    return split(Stage.SPLIT, *sessions, originals=[ORDERS])


QUEUES = {"ann_orders_fifo": holding(2), "bob_orders_fifo": holding(), "deployed_orders_fifo": holding()}


@pytest.mark.parametrize(
    ("forwarder", "since", "expected"),
    [
        pytest.param(on(), ago(149), [], id="what killed functions left comes back first"),
        pytest.param(on(ago(119)), LONG_AGO, [], id="and has time for it in each round"),
        pytest.param(on(ago(120)), LONG_AGO, [StopForwarding(ORDERS)], id="a round has had time"),
        pytest.param(on(LONG_AGO, ago(269)), LONG_AGO, [], id="a call was killed: what it left is finished first"),
        pytest.param(on(LONG_AGO, ago(270)), LONG_AGO, [StopForwarding(ORDERS)], id="it is gone"),
        pytest.param(on(LONG_AGO, ago(59)), LONG_AGO, [StopForwarding(ORDERS)], id="a call that may still run"),
        pytest.param(Forwarder(ON), LONG_AGO, [], id="a round of unknown age"),
        pytest.param(on(), ago(150), [StopForwarding(ORDERS)], id="then forwarding pauses"),
        pytest.param(Forwarder(ForwardingState.STOPPING, NOW), LONG_AGO, [], id="and is waited for"),
        pytest.param(off(ago(59)), LONG_AGO, [], id="until nothing runs any more"),
        pytest.param(
            off(ago(60), ago(329)), LONG_AGO, [StartForwarding(ORDERS)], id="a call was killed: another round"
        ),
        pytest.param(
            off(ago(60), ago(330)), LONG_AGO, [ReturnMessages("ann-orders.fifo", ORDERS)], id="killed, and given up"
        ),
        pytest.param(Forwarder(OFF, ago(60), (LONG_AGO,)), LONG_AGO, [StartForwarding(ORDERS)], id="an unknown stop"),
        pytest.param(off(), LONG_AGO, [ReturnMessages("ann-orders.fifo", ORDERS)], id="what is left is returned"),
        pytest.param(
            Forwarder(), LONG_AGO, [ReturnMessages("ann-orders.fifo", ORDERS)], id="also when never forwarded"
        ),
    ],
)
def test_in_a_fifo_queue_forwarding_pauses_while_messages_are_returned(forwarder, since, expected):
    record = fifo(ending(ANN, ORDERS, since=since), session(BOB, Phase.READY, ORDERS))

    assert actions(record, observed(TargetState.TEMPORARY, forwarder, **QUEUES)) == expected
    assert record.is_closing(ORDERS)


def test_sessions_that_end_one_after_the_other_do_not_put_off_the_pause():
    """From the first end on, calls are recorded."""
    ends = ending(ANN, ORDERS, since=ago(150)), ending(BOB, ORDERS, since=ago(1))
    copies = ending(SessionId("eve"), ORDERS, since=ago(200), stolen=frozenset())

    def found(*sessions: SplitSession) -> list[Action]:
        return actions(fifo(*sessions), observed(TargetState.TEMPORARY, on(), **QUEUES, eve_orders_fifo=holding()))

    assert found(*ends, session(SessionId("eve"), Phase.READY, ORDERS)) == [StopForwarding(ORDERS)]
    assert found(copies, *ends[1:]) == [DeleteTemporaryQueue("eve-orders.fifo")]
    unmatched = ending(BOB, ORDERS, since=ago(1), effective_at=None)
    assert found(copies, unmatched) == [
        DeleteTemporaryQueue("eve-orders.fifo"),
        DeleteTemporaryQueue("bob-orders.fifo"),
    ]


def test_forwarding_resumes_when_the_session_is_removed():
    record = fifo(session(BOB, Phase.READY, ORDERS))

    assert actions(record, observed(TargetState.TEMPORARY, off(), **QUEUES)) == [StartForwarding(ORDERS)]
    assert not record.is_closing(ORDERS)


def test_the_session_that_ended_first_is_emptied_first():
    record = fifo(ending(ANN, ORDERS, since=ago(900)), ending(BOB, ORDERS, since=ago(800)), session(SessionId("cyd")))
    record = replace(record, sessions=(*record.sessions[:2], session(SessionId("cyd"), Phase.READY, ORDERS)))
    queues = QUEUES | {"bob_orders_fifo": holding(4), "cyd_orders_fifo": holding()}

    assert actions(record, observed(TargetState.TEMPORARY, off(), **queues)) == [
        ReturnMessages("ann-orders.fifo", ORDERS)
    ]
    heirs = record.heirs(record.sessions[0], ORDERS, received_at=NOW)
    assert [one.session_id for one in heirs] == ["bob", "cyd"]
    assert [one.session_id for one in record.heirs(record.sessions[1], ORDERS, received_at=NOW)] == ["cyd"]
    assert [one.session_id for one in record.routed(ORDERS, received_at=NOW)] == ["ann", "bob", "cyd"]


def test_a_standard_queue_matches_only_live_sessions():
    record = split(Stage.SPLIT, ending(), session(BOB), session(SessionId("cyd"), Phase.STARTING))

    assert [one.session_id for one in record.routed(MEMES, received_at=NOW)] == ["bob"]
    assert not record.is_closing(MEMES)


def test_the_last_session_stays_until_its_fifo_queue_is_not_forwarded_any_more():
    """Otherwise messages that a killed function left would reach a target that has already had them."""
    last = ending(ANN, ORDERS, stolen=frozenset())
    record = fifo(last)
    deployed = {"deployed_orders_fifo": holding()}

    assert actions(record, observed(TargetState.TEMPORARY, on(), **deployed)) == [StopForwarding(ORDERS)]
    assert actions(record, observed(TargetState.TEMPORARY, off(ago(30)), **deployed)) == []
    assert actions(record, observed(TargetState.TEMPORARY, off(SETTLED, ago(100)), **deployed)) == [
        StartForwarding(ORDERS)
    ]
    assert actions(record, observed(TargetState.TEMPORARY, off(), **deployed)) == [ForgetSession(ANN)]


def test_after_the_last_session_forwarding_stops_and_the_target_drains():
    """Wire page, A.4 step 6."""
    deployed = {"deployed_memes": holding(3)}

    assert actions(split(Stage.SPLIT), observed(TargetState.TEMPORARY, on(), **deployed)) == [StopForwarding(MEMES)]
    assert actions(split(Stage.SPLIT), observed(TargetState.TEMPORARY, off(), **deployed)) == [
        MoveSplit(Stage.DRAINING)
    ]


@pytest.mark.parametrize(
    ("timeout", "queue", "since", "expected"),
    [
        pytest.param(None, holding(1), LONG_AGO, [], id="unset: as long as it takes"),
        pytest.param(None, holding(0, 1), LONG_AGO, [MoveSplit(Stage.RESTORING)], id="but a job in flight"),
        pytest.param(None, holding(1, 1), LONG_AGO, [], id="messages wait behind a job"),
        pytest.param(None, holding(), LONG_AGO, [MoveSplit(Stage.RESTORING)], id="drained"),
        pytest.param(None, holding(), ago(50), [], id="too few samples since then"),
        pytest.param(0, holding(9), NOW, [MoveSplit(Stage.RESTORING)], id="0: at once"),
        pytest.param(10, holding(9), ago(9), [], id="N: not yet"),
        pytest.param(10, holding(9), ago(10), [MoveSplit(Stage.RESTORING)], id="N: now"),
    ],
)
def test_draining(timeout, queue, since, expected):
    """Operator 3.173 and 3.175."""
    drain_timeout = None if timeout is None else timedelta(seconds=timeout)
    record = split(Stage.DRAINING, since=since, drain_timeout=drain_timeout)

    assert actions(record, observed(TargetState.TEMPORARY, deployed_memes=queue)) == expected


@pytest.mark.parametrize(
    ("queue", "since", "is_drained"),
    [
        pytest.param(holding(1), LONG_AGO, False, id="messages wait"),
        pytest.param(holding(0, 1), LONG_AGO, False, id="one is in flight"),
        pytest.param(holding(), ago(100), False, id="not for long enough since functions have settled"),
        pytest.param(holding(), ago(120), True, id="long enough"),
        pytest.param(with_use(holding(), QueueUse(ago(200))), ago(100), True, id="long enough since its last use"),
        pytest.param(with_use(holding(), QueueUse(ago(200))), ago(59), False, id="functions may still send"),
        pytest.param(with_use(holding(), QueueUse(ago(90))), ago(100), False, id="used lately"),
        pytest.param(with_use(TemporaryQueue(LONG_AGO, (ZERO,)), QueueUse()), ago(60), True, id="never used"),
    ],
)
def test_a_fifo_queue_is_drained_when_it_is_certainly_empty(queue, since, is_drained):
    """The rest would be returned behind newer messages of the original."""
    record = split(Stage.DRAINING, since=since, originals=[ORDERS])

    moves = actions(record, observed(TargetState.TEMPORARY, deployed_orders_fifo=queue))

    assert moves == ([MoveSplit(Stage.RESTORING)] if is_drained else [])


def closed(until: datetime | None) -> QueueUse:
    return QueueUse(until, is_closed=True)


@pytest.mark.parametrize(
    ("queue", "use", "expected"),
    [
        pytest.param(holding(), None, [], id="a use that is not recorded"),
        pytest.param(holding(), QueueUse(), [CloseQueue("ann-memes", ANN, QueueUse())], id="never used"),
        pytest.param(
            holding(), QueueUse(ago(5)), [CloseQueue("ann-memes", ANN, QueueUse(ago(5)))], id="used a moment ago"
        ),
        pytest.param(holding(), closed(None), [DeleteTemporaryQueue("ann-memes")], id="closed and never used"),
        pytest.param(holding(1), closed(None), [ReturnMessages("ann-memes", MEMES)], id="others sent messages"),
        pytest.param(TemporaryQueue(LONG_AGO), closed(None), [], id="no sample"),
        pytest.param(holding(), closed(ago(119)), [], id="empty, but not for long since its last use"),
        pytest.param(
            holding(), closed(ago(120)), [DeleteTemporaryQueue("ann-memes")], id="empty for long since its last use"
        ),
        pytest.param(holding(0, 1), closed(LONG_AGO), [], id="what is in flight is waited for"),
        pytest.param(holding(2), closed(ago(1)), [ReturnMessages("ann-memes", MEMES)], id="returned at once"),
    ],
)
def test_the_queue_of_an_ended_session_is_closed_and_deleted_by_its_recorded_use(queue, use, expected):
    record = split(Stage.SPLIT, ending(since=ago(10)), session(BOB))
    queues = {"ann_memes": with_use(queue, use), "bob_memes": holding(), "deployed_memes": holding()}

    assert actions(record, observed(TargetState.TEMPORARY, on(), **queues)) == expected


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        pytest.param(QueueUse(), [CloseQueue("ann-orders.fifo", ANN, QueueUse())], id="never used"),
        pytest.param(closed(None), [DeleteTemporaryQueue("ann-orders.fifo")], id="closed"),
        pytest.param(QueueUse(ago(5)), [], id="used: what a killed call sent is sent there again"),
    ],
)
def test_only_an_unused_fifo_queue_is_closed(use, expected):
    record = fifo(ending(ANN, ORDERS, since=ago(10)), session(BOB, Phase.READY, ORDERS))
    queues = QUEUES | {"ann_orders_fifo": with_use(holding(), use)}

    assert actions(record, observed(TargetState.TEMPORARY, on(), **queues)) == expected


@pytest.mark.parametrize(
    ("use", "forwarder", "expected"),
    [
        pytest.param(None, off(ago(100)), [], id="empty, but not for long since forwarding paused"),
        pytest.param(
            QueueUse(ago(120)), off(ago(100)), [DeleteTemporaryQueue("ann-orders.fifo")], id="nor since its last use"
        ),
        pytest.param(QueueUse(ago(119)), off(ago(100)), [], id="used lately"),
        pytest.param(QueueUse(ago(120)), off(ago(59)), [], id="functions may still run"),
        pytest.param(QueueUse(ago(120)), off(ago(100), ago(101)), [StartForwarding(ORDERS)], id="a killed call"),
    ],
)
def test_a_used_fifo_queue_is_deleted_when_forwarding_has_paused(use, forwarder, expected):
    record = fifo(ending(ANN, ORDERS), session(BOB, Phase.READY, ORDERS))
    queues = QUEUES | {"ann_orders_fifo": with_use(holding(), use)}

    assert actions(record, observed(TargetState.TEMPORARY, forwarder, **queues)) == expected


@pytest.mark.parametrize(
    ("forwarder", "expected"),
    [
        pytest.param(off(ago(60)), [RemoveForwarding(ORDERS), MoveSplit(Stage.RESTORING)], id="it stopped before"),
        pytest.param(off(ago(59)), [], id="calls may still run"),
        pytest.param(Forwarder(OFF), [], id="it is unknown when it stopped"),
        pytest.param(Forwarder(), [], id="it was deleted by hand"),
    ],
)
def test_a_fifo_queue_whose_forwarding_stopped_long_ago_drains_at_once(forwarder, expected):
    record = split(Stage.DRAINING, since=NOW, originals=[ORDERS])
    queue = with_use(holding(), QueueUse(LONG_AGO))

    assert actions(record, observed(TargetState.TEMPORARY, forwarder, deployed_orders_fifo=queue)) == expected


def test_a_queue_of_copies_is_not_closed():
    record = split(Stage.SPLIT, ending(since=ago(10), stolen=frozenset()), session(BOB))
    queues = {"ann_memes": with_use(holding(), QueueUse()), "bob_memes": holding(), "deployed_memes": holding()}

    assert actions(record, observed(TargetState.TEMPORARY, on(), **queues)) == []


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        pytest.param(QueueUse(), [DeleteTemporaryQueue("deployed-memes")], id="never used"),
        pytest.param(QueueUse(ago(120)), [DeleteTemporaryQueue("deployed-memes")], id="long enough since its last use"),
        pytest.param(QueueUse(ago(119)), [], id="used lately"),
        pytest.param(None, [], id="not recorded"),
    ],
)
def test_the_deployed_consumers_queue_is_deleted_by_its_recorded_use(use, expected):
    record = split(Stage.CLEANING, since=ago(10))

    assert actions(record, observed(TargetState.ORIGINAL, deployed_memes=with_use(holding(), use))) == expected


def test_forwarding_that_split_stopped_by_itself_is_started_again_before_a_pause():
    """It stopped before messages that killed calls left were sent again."""
    record = split(Stage.SPLIT, ending(ANN, ORDERS), originals=[ORDERS])

    found = observed(TargetState.TEMPORARY, Forwarder(OFF, LONG_AGO), ann_orders_fifo=holding(3))

    assert actions(record, found) == [StartForwarding(ORDERS)]


def test_a_queue_that_does_not_exist_is_drained():
    assert actions(split(Stage.DRAINING), observed(TargetState.TEMPORARY)) == [MoveSplit(Stage.RESTORING)]


def test_a_forwarder_is_deleted_when_it_has_settled():
    def forwarded(forwarder: Forwarder, stage: Stage = Stage.DRAINING) -> list[Action]:
        return actions(split(stage, since=NOW), observed(TargetState.TEMPORARY, forwarder, deployed_memes=holding(1)))

    assert forwarded(off(ago(59))) == []
    assert forwarded(off(SETTLED)) == [RemoveForwarding(MEMES)]
    assert forwarded(Forwarder(OFF)) == []
    assert forwarded(on()) == [StopForwarding(MEMES)]
    assert forwarded(off(SETTLED), Stage.RESTORING) == [RemoveForwarding(MEMES), SwitchTargetBack()]


def test_a_queue_is_deleted_only_after_the_target_is_back_and_nothing_forwards():
    """Operator 3.119: the main output queue was deleted too early."""
    record = split(Stage.RESTORING)

    assert actions(record, observed(TargetState.TEMPORARY, deployed_memes=holding())) == [SwitchTargetBack()]
    assert actions(record, observed(TargetState.CHANGING, deployed_memes=holding())) == []
    assert actions(record, observed(TargetState.ORIGINAL, off(ago(30)), deployed_memes=holding())) == []
    assert actions(record, observed(TargetState.ORIGINAL, deployed_memes=holding())) == [MoveSplit(Stage.CLEANING)]


def test_messages_that_the_target_left_are_returned_to_the_original():
    """With a drain time-out; mirrord loses it."""
    record = split(Stage.CLEANING)

    assert actions(record, observed(TargetState.ORIGINAL, deployed_memes=holding(2))) == [
        ReturnMessages("deployed-memes", MEMES, to_original=True)
    ]
    assert actions(record, observed(TargetState.ORIGINAL, deployed_memes=holding(0, 2))) == []
    assert actions(record, observed(TargetState.ORIGINAL, deployed_memes=holding())) == [
        DeleteTemporaryQueue("deployed-memes")
    ]
    assert actions(record, observed(TargetState.ORIGINAL)) == [ForgetSplit()]


def test_a_session_that_starts_during_draining_resumes_the_split():
    record = split(Stage.DRAINING, session(phase=Phase.STARTING, since=NOW))

    assert actions(record, observed(TargetState.TEMPORARY, deployed_memes=holding())) == [MoveSplit(Stage.SPLIT)]
