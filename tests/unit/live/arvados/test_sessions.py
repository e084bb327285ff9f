"""Sessions in Arvados' dialect, from the token to the end, by the table of arvados-ws's behaviour."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.model.records import LiveSettings
from signalbox.live.arvados.tokens import StageToken, stage_token
from signalbox.live.identity.tokens import TokenIdentity, TokenProblem, TokenRefusal, VerifiedToken
from signalbox.live.log.read_limits import PastTooLarge, ReadsBusy
from signalbox.live.model.state import Dialect, Elapsed, Killed, Lost, RightsChanged, Session, SessionState
from signalbox.live.outbox.items import CloseRequest
from signalbox.live.outbox.ports import PostResult
from signalbox.live.outbox.results import DeliveryOutcome
from signalbox.live.outbox.writer import LONGEST_BUSY_OF_ROWS
from signalbox.live.session.admission import NO_REALM, WRONG_TOKEN
from signalbox.live.session.arvados import KEEP_ALIVE_AFTER, MAXIMUM_FILTER_BYTES, MAXIMUM_SUBSCRIPTIONS
from signalbox.live.session.connection import Refusal
from signalbox.live.session.handshake import MAXIMUM_FAILURES
from signalbox.live.wamp.audience import Audience
from signalbox.live.wamp.messages import SessionId
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Right, Role
from tests.fakes.live import REALM
from tests.unit.live.arvados.stage import CONNECTION, CREATED, TOKEN, UPDATED, ArvadosStage, filters_of

OK, BAD = {"status": 200}, {"status": 400}
JWT = "eyJh.eyJz.c2ln"
ANN = UserName("ann@lab")


@pytest.fixture
def stage() -> ArvadosStage:
    return ArvadosStage()


@pytest.fixture
def connected(stage: ArvadosStage) -> ArvadosStage:
    stage.connect()
    return stage


def state_of(stage: ArvadosStage) -> SessionState:
    stored = stage.world.sessions.find(CONNECTION)
    assert stored is not None
    return stored.session.state


def known(stage: ArvadosStage, **changed: object) -> VerifiedToken:
    """Make a token known, and let its user read."""
    ends_at = stage.world.moment + timedelta(minutes=5)
    identity = TokenIdentity("lab", Role.SUBSCRIBER, ("staff",), ends_at)
    verified = replace(VerifiedToken(ANN, "lab", identity, stage.world.moment), **changed)  # type: ignore[arg-type]
    stage.world.tokens.results[JWT] = verified
    return verified


# --- tokens


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v2/bob/secret", StageToken(UserName("bob"), "secret")),
        ("v2/bob/a/b", StageToken(UserName("bob"), "a/b")),
        *((text, None) for text in ("", "v2", "v2/bob", "v2/bob/", "v1/bob/secret", "v2/no_name/secret", "v2//secret")),
    ],
)
def test_a_token_of_a_stage_user_has_the_form_of_arvados(text: str, expected: StageToken | None) -> None:
    assert stage_token(text) == expected


def test_a_token_is_not_shown() -> None:
    assert "secret!" not in repr(StageToken(UserName("bob"), "secret!"))


def test_a_right_token_joins_and_is_not_stored(connected: ArvadosStage) -> None:
    stored = connected.world.sessions.find(CONNECTION)

    assert stored is not None
    assert (stored.session.state, stored.session.dialect) == (SessionState.JOINED, Dialect.ARVADOS)
    assert "source-secret" not in repr(stored)
    assert stored.session.secret == connected.world.accounts.secrets["source"].digest
    (member,) = connected.world.realm_sessions.every(REALM)
    assert (member.listener.authid, member.listener.authrole) == ("source", "source")
    assert connected.world.timers.delays == [KEEP_ALIVE_AFTER]
    assert [(one.kind, one.outcome) for one in connected.world.recorded] == [("session", "started")]


@pytest.mark.parametrize(
    "token", ["v2/source/wrong", "v2/nobody/source-secret", "source-secret", "v2/zzzzz-gj3su-000000000000000", "x"]
)
def test_a_wrong_token_is_refused(stage: ArvadosStage, token: str) -> None:
    assert stage.admit(token) == WRONG_TOKEN


def test_wrong_tokens_are_counted_up_to_a_limit_and_lock_nobody_out(stage: ArvadosStage) -> None:
    for _ in range(MAXIMUM_FAILURES + 5):
        assert stage.admit("v2/source/wrong") == WRONG_TOKEN

    assert stage.world.accounts.failures["source"] == MAXIMUM_FAILURES
    assert isinstance(stage.admit(), Session)


@pytest.mark.parametrize("token", [TOKEN, JWT])
@pytest.mark.parametrize("live", [None, LiveSettings()])
def test_a_stage_without_a_realm_for_arvados_refuses_every_token(
    stage: ArvadosStage, live: LiveSettings | None, token: str
) -> None:
    stage.world.declare(live)
    assert stage.admit(token) == NO_REALM

    stage.world.exchanges.arvados = None
    assert stage.admit(token) == NO_REALM


def test_a_token_of_an_issuer_joins_until_it_is_over(stage: ArvadosStage) -> None:
    known(stage)
    stage.world.accounts.grants[REALM, ANN] = stage.world.accounts.grants[REALM, UserName("source")]
    stage.connect(JWT)
    stage.subscribe()
    stage.publish(1)
    assert stage.messages()[0] == OK
    assert stage.new() == []

    stage.world.moment += timedelta(minutes=5)
    stage.publish(2)
    assert stage.ids() == []
    stage.notify(Elapsed())

    assert state_of(stage) is SessionState.CLOSED
    assert [type(item) for item in stage.waiting()] == [CloseRequest]
    assert stage.world.timers.delays == [timedelta(minutes=5)]


def test_a_frame_after_the_end_of_a_token_ends_the_session(stage: ArvadosStage) -> None:
    known(stage)
    stage.connect(JWT)
    stage.world.moment += timedelta(minutes=5)

    stage.subscribe()

    assert state_of(stage) is SessionState.CLOSED
    assert stage.messages() == []


@pytest.mark.parametrize(
    ("problem", "status"), [(TokenProblem.EXPIRED, 401), (TokenProblem.SIGNATURE, 401), (TokenProblem.UNAVAILABLE, 503)]
)
def test_a_refused_token_of_an_issuer_has_its_reason(stage: ArvadosStage, problem: TokenProblem, status: int) -> None:
    stage.world.tokens.results[JWT] = TokenRefusal(problem)

    assert stage.admit(JWT) == Refusal(status, problem.text, f"token: {problem.word}")


@pytest.mark.parametrize("minutes", [None, -1])
def test_a_token_that_was_issued_before_its_sessions_were_ended_is_refused(
    stage: ArvadosStage, minutes: int | None
) -> None:
    issued_at = None if minutes is None else stage.world.moment + timedelta(minutes=minutes)
    known(stage, issued_at=issued_at)
    stage.world.accounts.end_tokens(REALM, ANN, now=stage.world.moment)

    refusal = stage.admit(JWT)

    assert isinstance(refusal, Refusal)
    assert (refusal.status, refusal.problem) == (401, "token: ended")
    known(stage)
    assert isinstance(stage.admit(JWT), Session)


def test_a_token_with_the_name_of_a_stage_user_is_refused(stage: ArvadosStage) -> None:
    known(stage, authid="source")

    refusal = stage.admit(JWT)

    assert isinstance(refusal, Refusal)
    assert refusal.problem == "token: stage_user"


# --- requests


def test_a_subscription_is_answered_and_gets_later_rows_with_numbers(connected: ArvadosStage) -> None:
    connected.publish(1)
    connected.subscribe()
    connected.publish(2)
    connected.publish(3, "update", "trial.b")

    assert connected.messages() == [
        OK,
        {"msgID": 1, "id": 2, "object_uuid": "zzzzz-2", "event_type": "create"},
        {"msgID": 2, "id": 3, "object_uuid": "zzzzz-3", "event_type": "update"},
    ]
    connected.publish(4)
    assert [message["msgID"] for message in connected.messages()] == [3]


def test_a_row_that_passes_any_subscription_is_sent_once(connected: ArvadosStage) -> None:
    for filters in (CREATED, None, CREATED, UPDATED):
        connected.subscribe(filters)
    connected.publish(1)

    assert connected.messages()[:-1] == [OK] * 4
    connected.publish(2, "delete")
    assert connected.ids() == [2]


def test_a_row_that_passes_no_subscription_is_not_sent(connected: ArvadosStage) -> None:
    connected.subscribe(CREATED)
    connected.publish(1, "update")
    connected.publish(2)

    assert connected.ids() == [2]


def test_unsubscribing_removes_the_first_subscription_with_equal_filters(connected: ArvadosStage) -> None:
    for filters in (CREATED, UPDATED, CREATED):
        connected.subscribe(filters)
    connected.unsubscribe(CREATED)

    assert connected.messages() == [OK] * 4
    assert filters_of(connected) == [json.dumps(one, separators=(",", ":")) for one in (UPDATED, CREATED)]
    connected.unsubscribe(CREATED)
    connected.publish(1)
    connected.publish(2, "update")
    assert connected.ids() == [2]


def test_after_the_last_subscription_nothing_is_sent(connected: ArvadosStage) -> None:
    connected.subscribe()
    connected.unsubscribe()
    connected.publish(1)

    assert connected.messages() == [OK, OK]
    assert connected.world.subscribers.of_topic(REALM, "trial.a") == []
    connected.unsubscribe()
    assert connected.messages() == [BAD]


def test_bad_input_is_answered_and_counted_and_the_connection_lives(connected: ArvadosStage) -> None:
    for text in ("nonsense", '{"method":"dance"}', "[1]", '{"method":"subscribe","filters":5}'):
        connected.say(text)
    connected.subscribe()
    connected.publish(1)

    assert connected.messages()[:5] == [BAD] * 4 + [OK]
    events = [event for event in connected.world.recorded if event.kind == "frame"]
    assert [(one.outcome, one.source, one.labels["user"]) for one in events] == [("refused", REALM, "source")] * 4


def test_subscriptions_are_limited_by_number_and_size(connected: ArvadosStage) -> None:
    connected.subscribe([["event_type", "in", ["x" * MAXIMUM_FILTER_BYTES]]])
    assert connected.messages() == [BAD]

    for _ in range(MAXIMUM_SUBSCRIPTIONS + 1):
        connected.subscribe(CREATED)

    assert connected.messages() == [OK] * MAXIMUM_SUBSCRIPTIONS + [BAD]


def test_a_subscription_for_which_the_realm_has_no_room_is_refused(connected: ArvadosStage) -> None:
    connected.subscribe(CREATED)
    connected.world.subscribers.left = 0
    connected.subscribe(CREATED)  # both get the events of one pattern
    for _ in range(2):
        connected.unsubscribe(CREATED)

    connected.subscribe(CREATED)

    assert connected.messages() == [OK] * 4 + [BAD]
    assert connected.world.subscribers.of_topic(REALM, "trial.a") == []


def test_rights_are_checked_for_each_row_by_its_topic(connected: ArvadosStage) -> None:
    connected.subscribe()
    connected.publish(1, topic="secret.a")
    connected.publish(2)
    connected.publish(3, audience=Audience(eligible_authid=frozenset({"bob"})))
    assert connected.ids() == [2]

    connected.world.accounts.grants[REALM, UserName("source")].clear()
    connected.notify(RightsChanged())
    connected.publish(4)
    assert connected.ids() == []

    connected.world.grant("source", Right.READ, pattern="secret")
    connected.publish(5, topic="secret.a")
    assert connected.ids() == [5]


def test_events_without_a_row_are_not_sent(connected: ArvadosStage) -> None:
    connected.subscribe()
    logged = connected.log(1)
    connected.world.log.logged[REALM].clear()
    connected.log(2)
    connected._logged = replace(logged, payload=replace(logged.payload, arguments=("text",)))
    connected.route()

    assert connected.messages() == [OK]


# --- the connection


def test_the_connection_is_kept_open_once_for_each_timer(connected: ArvadosStage) -> None:
    for _ in range(2):
        connected.notify(Elapsed())
    assert connected.messages() == []

    for _ in range(2):
        connected.world.moment += KEEP_ALIVE_AFTER
        for _ in range(2):
            connected.notify(Elapsed())
        assert connected.messages() == [{}]
    assert connected.world.timers.delays == [KEEP_ALIVE_AFTER] * 3


@pytest.mark.parametrize("signal", [Lost(), Killed("wamp.close.killed", "by root")])
def test_a_session_ends_without_a_message(connected: ArvadosStage, signal: Lost | Killed) -> None:
    connected.subscribe()
    connected.messages()

    connected.notify(signal)

    assert state_of(connected) is SessionState.CLOSED
    assert connected.world.subscribers.of_topic(REALM, "trial.a") == []
    result = connected.deliver()
    assert result is not None
    assert result.outcome is DeliveryOutcome.CLOSED
    assert connected.new() == []
    connected.subscribe()
    assert connected.messages() == []


@pytest.mark.parametrize("signal", [Elapsed(), RightsChanged(), Killed("", ""), Lost()])
def test_before_it_is_admitted_a_session_only_ends(stage: ArvadosStage, signal: object) -> None:
    session = stage.admit()
    assert isinstance(session, Session)
    stage.world.sessions.open(session)

    stage.notify(signal)  # type: ignore[arg-type]

    assert state_of(stage) is (SessionState.CLOSED if isinstance(signal, Killed | Lost) else SessionState.OPEN)
    assert stage.messages() == []


# --- catching up


def test_a_client_catches_up_in_the_order_of_ids_and_then_gets_live_rows(stage: ArvadosStage) -> None:
    for number in (5, 3, 1, 4, 2):
        stage.publish(number, topic=f"trial.{number}")
    stage.connect()
    stage.subscribe(last_log_id=2)
    stage.publish(6)
    stage.publish(7)

    messages = stage.messages()

    assert messages[0] == OK
    assert [message["id"] for message in messages[1:]] == [3, 4, 5, 6, 7]
    assert [message["msgID"] for message in messages[1:]] == [1, 2, 3, 4, 5]
    stage.publish(8)
    assert stage.ids() == [8]


@pytest.mark.parametrize(("last_log_id", "expected"), [(0, []), (-1, [1, 2]), (1, [2]), (2, []), (9, [])])
def test_only_rows_after_the_last_log_id_are_past_rows(
    stage: ArvadosStage, last_log_id: int, expected: list[int]
) -> None:
    """The id 0 requests none, as in the original."""
    stage.publish(1)
    stage.publish(2)
    stage.connect()
    stage.subscribe(last_log_id=last_log_id)

    assert stage.ids() == expected


def test_past_rows_are_filtered_and_permitted(stage: ArvadosStage) -> None:
    stage.publish(1)
    stage.publish(2, "update")
    stage.publish(3, topic="secret.a")
    stage.publish(4, audience=Audience(eligible_authid=frozenset({"bob"})))
    stage.publish(5)
    stage.connect()
    stage.subscribe(CREATED, last_log_id=-1)

    assert stage.ids() == [1, 5]


def test_the_requests_of_a_client_that_connects_again_get_each_row_once_in_order(stage: ArvadosStage) -> None:
    """The SDK sends every filter with the same `last_log_id`, one right after the other."""
    stage.connect()
    frame = json.dumps({"method": "subscribe", "filters": CREATED, "last_log_id": 1})
    for number in range(1, 9):
        stage.publish(number, "update" if number % 2 else "create")
    stage.receive("f" + frame, "f" + frame.replace("create", "update"), 'f{"method":"subscribe","last_log_id":1}')
    stage.publish(9)

    assert stage.ids() == [2, 3, 4, 5, 6, 7, 8, 9]


def test_a_second_request_gets_what_the_first_filters_left_out(stage: ArvadosStage) -> None:
    for number in range(1, 5):
        stage.publish(number, "update" if number % 2 else "create")
    stage.connect()
    stage.subscribe(CREATED, last_log_id=-1)
    assert stage.ids() == [2, 4]
    stage.publish(5)
    stage.publish(6, "update")
    assert stage.ids() == [5]

    stage.subscribe(None, last_log_id=-1)

    assert stage.ids() == [1, 3, 6]


def test_a_live_row_waits_for_the_catch_up_and_comes_in_the_order_of_ids(connected: ArvadosStage) -> None:
    connected.subscribe(CREATED)
    connected.publish(1, "update")
    connected.publish(2, "update")
    assert connected.ids() == []
    connected.subscribe(UPDATED, last_log_id=-1)
    connected.publish(3)
    outbox = connected.world.outboxes.items[CONNECTION]
    outbox[-2:] = reversed(outbox[-2:])  # the row was published between the answer and the request to catch up

    assert connected.ids() == [1, 2, 3]


def test_rows_that_are_older_than_half_an_hour_are_gone(stage: ArvadosStage) -> None:
    stage.publish(1)
    stage.world.moment += timedelta(minutes=29)
    stage.publish(2)
    stage.world.moment += timedelta(minutes=2)
    stage.connect()
    stage.subscribe(last_log_id=-1)

    assert stage.ids() == [2]


def test_a_catch_up_continues_where_its_time_ended(stage: ArvadosStage) -> None:
    for number in range(1, 6):
        stage.publish(number)
    stage.connect()
    stage.subscribe(last_log_id=1)
    stage.publish(6)
    stage.world.connections.results = [PostResult.POSTED, PostResult.POSTED, PostResult.BUSY]

    result = stage.deliver()

    assert result is not None
    assert result.outcome is DeliveryOutcome.BLOCKED
    assert stage.ids() == [2, 3, 4, 5, 6]
    assert [message["msgID"] for message in map(json.loads, stage.world.connections.posted[CONNECTION][1:])] == [
        *(1, 2, 3, 4, 5)
    ]


def test_no_row_is_posted_after_the_time_of_the_function(stage: ArvadosStage) -> None:
    stage.publish(1)
    stage.connect()
    stage.subscribe(last_log_id=-1)
    stage.publish(2)
    stage.deliver(count=1)

    for _ in range(2):
        result = stage.deliver(seconds=0)
        assert result is not None
        assert result.outcome is DeliveryOutcome.OUT_OF_TIME
    assert stage.ids() == [1, 2]


def test_a_catch_up_reads_a_part_of_the_rows_at_a_time(stage: ArvadosStage) -> None:
    for number in range(1, 8):
        stage.publish(number, "update")
    stage.publish(8)
    stage.connect()
    stage.subscribe(CREATED, last_log_id=-1)
    stage.deliver(count=1)
    stage.world.log.small = 2

    results = [stage.deliver() for _ in range(2)]

    assert [result and result.outcome for result in results] == 2 * [DeliveryOutcome.OUT_OF_TIME]
    assert (progress := stage.states[CONNECTION].progress) is not None
    assert progress[1] == 6
    assert stage.ids() == [8]


def test_a_catch_up_waits_until_its_user_may_read_again(stage: ArvadosStage) -> None:
    stage.publish(1)
    stage.connect()
    stage.subscribe(last_log_id=-1)
    stage.deliver(count=1)
    stage.world.log.problem = ReadsBusy("of this user")

    result = stage.deliver()

    assert result is not None
    assert result.outcome is DeliveryOutcome.READS_BUSY
    stage.world.log.problem = None
    assert stage.ids() == [1]


def test_live_rows_behind_a_catch_up_that_waits_leave_the_outbox_and_are_in_it(stage: ArvadosStage) -> None:
    stage.publish(1)
    stage.connect()
    stage.subscribe(last_log_id=-1)
    stage.deliver(count=1)
    stage.publish(2)
    stage.world.log.problem = ReadsBusy("of this user")

    result = stage.deliver()

    assert result is not None
    assert (result.outcome, len(result.not_done)) == (DeliveryOutcome.READS_BUSY, 1)
    stage.world.log.problem = None
    assert stage.ids() == [1, 2]


def test_a_catch_up_that_waits_for_too_long_ends_its_connection(stage: ArvadosStage) -> None:
    stage.publish(1)
    stage.connect()
    stage.subscribe(last_log_id=-1)
    stage.deliver(count=1)
    stage.world.log.problem = ReadsBusy("of this user")

    result = stage.deliver(waited=LONGEST_BUSY_OF_ROWS * 2)

    assert result is not None
    assert result.outcome is DeliveryOutcome.TOO_LARGE
    assert stage.world.connections.closed == {CONNECTION}


def test_a_connection_with_too_many_rows_is_closed_without_a_message_of_wamp(stage: ArvadosStage) -> None:
    stage.publish(1)
    stage.connect()
    stage.subscribe(last_log_id=-1)
    stage.deliver(count=1)
    posted = len(stage.world.connections.posted[CONNECTION])
    stage.world.log.problem = PastTooLarge("too many")

    result = stage.deliver()

    assert result is not None
    assert result.outcome is DeliveryOutcome.TOO_LARGE
    assert (len(stage.world.connections.posted[CONNECTION]), stage.world.connections.closed) == (posted, {CONNECTION})


def test_the_state_is_saved_in_between(stage: ArvadosStage) -> None:
    for number in range(1, 152):
        stage.publish(number)
    stage.connect()
    stage.subscribe(last_log_id=-1)
    stage.deliver(count=1)
    stage.world.connections.results = [PostResult.POSTED] * 120 + [PostResult.GONE]

    stage.deliver()

    assert stage.states[CONNECTION].rows.number == 120


def test_a_catch_up_that_is_received_again_is_done_once(stage: ArvadosStage) -> None:
    stage.publish(1)
    stage.connect()
    stage.subscribe(last_log_id=-1)
    assert stage.ids() == [1]
    stage.delivered[CONNECTION] -= 1

    assert stage.ids() == []


def test_a_catch_up_of_a_session_that_has_ended_posts_nothing(stage: ArvadosStage) -> None:
    stage.publish(1)
    stage.connect()
    stage.subscribe(last_log_id=-1)
    stage.deliver(count=1)
    stage.notify(Lost())

    result = stage.deliver(count=1)

    assert result is not None
    assert result.outcome is DeliveryOutcome.DONE
    assert stage.ids() == []


def test_a_row_for_named_sessions_is_sent_live_and_never_later(stage: ArvadosStage) -> None:
    stage.connect()
    stage.subscribe(last_log_id=-1)
    stored = stage.world.sessions.find(CONNECTION)
    assert stored is not None
    named = Audience(eligible=frozenset({SessionId(stored.session.session or 0)}))
    stage.deliver(count=1)
    stage.publish(1, audience=named)
    stage.delivered[CONNECTION] += 1  # the events come before the catch-up
    assert stage.ids() == [1]


def test_a_slow_client_is_disconnected(connected: ArvadosStage) -> None:
    connected.subscribe()
    connected.messages()
    connected.publish(1)

    result = connected.deliver(waited=timedelta(minutes=2))

    assert result is not None
    assert result.outcome is DeliveryOutcome.TOO_SLOW


# --- any order

STEPS = st.lists(
    st.sampled_from(["publish", "publish late", "create", "update", "all", "deliver one", "deliver all"]), max_size=30
)


@given(STEPS)
def test_after_catching_up_a_connection_has_every_row_once(steps: list[str]) -> None:
    """Every request has the same `last_log_id`, as the SDK's; rows come late, in any order of ids."""
    stage = ArvadosStage()
    for number in (10, 11, 12):
        stage.publish(number, "update" if number % 2 else "create")
    stage.connect()
    published, late, requested = [10, 11, 12], 40, set[str]()
    for step in steps:
        if step.startswith("publish"):
            late -= step.endswith("late")
            number = late if step.endswith("late") else 100 + len(published)
            stage.publish(number, "update" if number % 2 else "create")
            published.append(number)
        elif step.startswith("deliver"):
            stage.deliver(count=1 if step.endswith("one") else None)
        else:
            stage.subscribe({"create": CREATED, "update": UPDATED, "all": None}[step], last_log_id=10)
            requested |= {"create", "update"} if step == "all" else {step}

    stage.deliver()

    found = [message["id"] for message in stage.new() if "id" in message]
    kinds = {number: "update" if number % 2 else "create" for number in published}
    assert sorted(found) == sorted(number for number in published if number > 10 and kinds[number] in requested)
