"""The states of a rendezvous, and the names of its client."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.queues import InvalidQueueName, parse_queue_name
from signalbox.rendezvous.rules.held_polls import slots_to_try
from signalbox.rendezvous.rules.states import (
    OPEN_STATES,
    TRANSITIONS,
    ClientId,
    Method,
    Pool,
    ProxySessionId,
    Rendezvous,
    State,
    fitting_pools,
    is_claimable,
    parse_client_id,
    waiting_pool,
)
from signalbox.rendezvous.wire.nat import Nat, fitting_proxies
from tests.fakes.rendezvous import START

PREFIX = "snowflake-client-"
RECORD = Rendezvous(
    client_id=ClientId("c"),
    method=Method.SQS,
    state=State.PENDING,
    created_at=START,
    available_at=START,
    deadline=START + timedelta(seconds=30),
)
SID = ProxySessionId("p")


@pytest.mark.parametrize("text", ["0123456789abcdef", "A-b_9", "x", "y" * 63])
def test_a_client_id_may_be_whatever_a_queue_name_can_end_in(text: str) -> None:
    assert parse_client_id(text, prefix=PREFIX) == text


@pytest.mark.parametrize("text", ["", "y" * 64, "a.b", "a b", "a/b", "ü", "a.fifo", "\u0000", "a\nb"])
def test_a_client_id_that_no_queue_can_be_named_after_is_rejected(text: str) -> None:
    with pytest.raises(InvalidQueueName):
        parse_client_id(text, prefix=PREFIX)


def test_a_queue_name_is_rejected_with_what_is_wrong_with_it() -> None:
    with pytest.raises(InvalidQueueName, match="81 characters; SQS allows 1 to 80"):
        parse_queue_name("a" * 81)


@pytest.mark.parametrize("client", list(Nat))
@pytest.mark.parametrize("proxy", list(Nat))
def test_the_pools_say_the_same_as_upstreams_nat_table(client: Nat, proxy: Nat) -> None:
    assert (waiting_pool(client) in fitting_pools(proxy)) is (proxy in fitting_proxies(client))


def test_an_unrestricted_proxy_takes_from_both_pools() -> None:
    assert fitting_pools(Nat.UNRESTRICTED) == (Pool.ANY_PROXY, Pool.UNRESTRICTED_PROXY)


def test_final_states_lead_nowhere() -> None:
    assert [state for state, following in TRANSITIONS.items() if not following] == [
        State.ANSWERED,
        State.EXPIRED,
        State.REFUSED,
    ]


@pytest.mark.parametrize("state", [state for state in State if state not in OPEN_STATES])
def test_a_finished_offer_cannot_be_claimed(state: State) -> None:
    assert not is_claimable(replace(RECORD, state=state), sid=SID, now=START)


@pytest.mark.parametrize(
    ("changes", "claimable"),
    [
        pytest.param({}, True, id="pending"),
        pytest.param({"available_at": START + timedelta(seconds=1)}, False, id="lent to another"),
        pytest.param({"available_at": START + timedelta(seconds=1), "lent_to": SID}, True, id="lent to this one"),
        pytest.param({"state": State.MATCHED, "lent_to": SID}, True, id="match is over"),
        pytest.param(
            {"state": State.MATCHED, "available_at": START + timedelta(seconds=1), "lent_to": SID},
            False,
            id="matched",
        ),
        pytest.param({"deadline": START}, False, id="out of patience"),
    ],
)
def test_when_an_open_offer_can_be_claimed(changes: dict, claimable: bool) -> None:  # noqa: FBT001
    assert is_claimable(replace(RECORD, **changes), sid=SID, now=START) is claimable


@given(limit=st.integers(1, 1000), random_bits=st.integers(0, 2**32 - 1))
def test_the_slots_to_try_are_few_different_and_exist(limit: int, random_bits: int) -> None:
    slots = slots_to_try(limit, random_bits=random_bits)

    assert len(set(slots)) == len(slots) == min(2, limit)
    assert all(0 <= slot < limit for slot in slots)
