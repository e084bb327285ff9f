"""The states and pools of a rendezvous, and client ids."""

from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.queues import InvalidQueueName, parse_queue_name
from signalbox.rendezvous.model.pace import first_pace, has_compatible_proxy, proxy_group
from signalbox.rendezvous.model.states import (
    OPEN_STATES,
    TRANSITIONS,
    ClientId,
    OfferPool,
    OfferState,
    RendezvousMethod,
    RendezvousRecord,
    compatible_pools,
    hidden_until,
    is_claimable,
    offer_pool,
    parse_client_id,
)
from signalbox.rendezvous.wire.nat import Nat
from tests.fakes.rendezvous import START

PREFIX = "snowflake-client-"
RECORD = RendezvousRecord(
    client_id=ClientId("c"),
    method=RendezvousMethod.SQS,
    created_at=START,
    available_at=START,
    deadline=START + timedelta(seconds=30),
)


@pytest.mark.parametrize("text", ["0123456789abcdef", "A-b_9", "x", "y" * 63])
def test_a_client_id_may_be_any_valid_end_of_a_queue_name(text: str) -> None:
    assert parse_client_id(text, prefix=PREFIX) == text


@pytest.mark.parametrize("text", ["", "y" * 64, "a.b", "a b", "a/b", "ü", "a.fifo", "\u0000", "a\nb"])
def test_a_client_id_that_makes_an_invalid_queue_name_is_rejected(text: str) -> None:
    with pytest.raises(InvalidQueueName):
        parse_client_id(text, prefix=PREFIX)


def test_a_queue_name_is_rejected_with_the_reason() -> None:
    with pytest.raises(InvalidQueueName, match="81 characters; SQS allows 1 to 80"):
        parse_queue_name("a" * 81)


@pytest.mark.parametrize("client", list(Nat))
@pytest.mark.parametrize("proxy", list(Nat))
def test_a_proxy_serves_a_client_if_one_of_them_is_unrestricted(client: Nat, proxy: Nat) -> None:
    paces = {proxy_group(proxy): first_pace(START)}
    serves = Nat.UNRESTRICTED in (client, proxy)

    assert (offer_pool(client) in compatible_pools(proxy)) is serves
    assert has_compatible_proxy(paces, client, now=START, recency=timedelta(0)) is serves


def test_an_unrestricted_proxy_takes_from_both_pools() -> None:
    assert compatible_pools(Nat.UNRESTRICTED) == (OfferPool.ANY_PROXY, OfferPool.UNRESTRICTED_PROXY)


def test_final_states_have_no_transitions() -> None:
    assert [state for state, following in TRANSITIONS.items() if not following] == [
        OfferState.ANSWERED,
        OfferState.EXPIRED,
        OfferState.REFUSED,
    ]


@pytest.mark.parametrize("state", [state for state in OfferState if state not in OPEN_STATES])
def test_a_finished_offer_cannot_be_claimed(state: OfferState) -> None:
    assert not is_claimable(replace(RECORD, state=state), now=START)


@pytest.mark.parametrize(
    ("changes", "claimable"),
    [
        pytest.param({}, True, id="pending"),
        pytest.param({"state": OfferState.MATCHED}, True, id="match is over"),
        pytest.param({"state": OfferState.MATCHED, "available_at": START + timedelta(seconds=1)}, False, id="matched"),
        pytest.param({"deadline": START}, False, id="out of patience"),
    ],
)
def test_when_an_open_offer_can_be_claimed(changes: dict, claimable: bool) -> None:  # noqa: FBT001
    assert is_claimable(replace(RECORD, **changes), now=START) is claimable


@pytest.mark.parametrize(
    ("patience", "after", "hidden"),
    [
        pytest.param(30, 0, 10, id="a check every ten seconds"),
        pytest.param(30, 13, 23, id="from the time of the delivery"),
        pytest.param(30, 23, 30, id="at most until the deadline"),
        pytest.param(900, 0, 300, id="a third of a long patience"),
        pytest.param(12, 3, 12, id="a short patience"),
    ],
)
def test_a_parked_offer_is_hidden_until_its_next_check(patience: int, after: int, hidden: int) -> None:
    record = replace(RECORD, deadline=START + timedelta(seconds=patience))

    assert hidden_until(record, START + timedelta(seconds=after)) == START + timedelta(seconds=hidden)
