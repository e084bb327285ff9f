"""The filters of subscriptions: two are evaluated, and all others are ignored silently, as arvados-ws does."""

import tracemalloc
from dataclasses import dataclass

import pytest

from signalbox.live.arvados.filters import LogSubscription, canonical, conditions
from signalbox.live.arvados.timestamps import nanoseconds, nanoseconds_of
from signalbox.live.session.arvados import MAXIMUM_FILTER_BYTES
from signalbox.live.wamp.messages import SubscriptionId
from tests.unit.live.session.stage import NOW

AT = "2026-11-21T20:00:00.123456789Z"
BEFORE, AFTER = "2026-11-21T20:00:00.123456788Z", "2026-11-21T20:00:00.12345679Z"


@dataclass(frozen=True)
class Row:
    event_type: str = "create"
    created_at: int = nanoseconds(AT) or 0


def passes(*filters: list[object]) -> bool:
    return LogSubscription(SubscriptionId(1), canonical(list(filters))).matches(Row())


@pytest.mark.parametrize(
    ("operand", "expected"),
    [
        (["create"], True),
        (["update", "create"], True),
        (["update"], False),
        ([], False),
        ([1, None], False),
        (["CREATE"], False),
        ("create", True),  # no list: the filter is ignored
        (None, True),
    ],
)
def test_event_type_is_compared_by_in(operand: object, *, expected: bool) -> None:
    assert passes(["event_type", "in", operand]) is expected


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (">=", [True, True, False]),
        ("<=", [False, True, True]),
        (">", [True, False, False]),
        ("<", [False, False, True]),
        ("=", [False, True, False]),
        ("!=", [True, True, True]),  # unknown: the filter is ignored
        ("in", [True, True, True]),
        (5, [True, True, True]),
    ],
)
def test_created_at_is_compared_by_its_operators_in_nanoseconds(operator: object, expected: list[bool]) -> None:
    assert [passes(["created_at", operator, moment]) for moment in (BEFORE, AT, AFTER)] == expected


@pytest.mark.parametrize(
    "ignored",
    [
        ["event_type", "=", "delete"],
        ["event_type", "not in", ["create"]],
        ["object_uuid", "is_a", "arvados#collection"],
        ["object_uuid", "=", "zzzzz-4zz18-000000000000000"],
        ["created_at", ">", 5],
        ["created_at", ">", "yesterday"],
        ["created_at", ">", "2027-11-21 20:00:00Z"],
        [None, None, None],
        [["event_type"], "in", ["delete"]],
        [{}, {}, {}],
    ],
)
def test_other_filters_are_ignored(ignored: list[object]) -> None:
    assert passes(ignored)
    assert not passes(ignored, ["event_type", "in", ["delete"]])


def test_a_row_must_pass_all_filters_of_a_subscription() -> None:
    assert passes(["event_type", "in", ["create"]], ["created_at", "<", AFTER])
    assert not passes(["event_type", "in", ["create"]], ["created_at", ">", AFTER])
    assert passes()
    assert LogSubscription(SubscriptionId(1)).matches(Row())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:01.5Z", 1_500_000_000),
        ("1970-01-01T00:00:01,000000001999Z", 1_000_000_001),
        ("1969-12-31T23:59:59.75Z", -250_000_000),
        *((text, None) for text in ("", "1970-01-01", "1970-01-01T00:00:00", "1970-01-01t00:00:00z")),
        ("1970-01-32T00:00:00Z", None),
        ("1970-01-01T00:00:00.Z", None),
    ],
)
def test_a_time_is_rfc_3339_as_go_parses_it(text: str, expected: int | None) -> None:
    assert nanoseconds(text) == expected


def test_a_moment_has_the_nanoseconds_of_its_text() -> None:
    assert nanoseconds_of(NOW) == nanoseconds("2026-11-21T20:00:00Z")


def test_the_filters_of_many_sessions_fit_into_the_memory_of_a_function():
    names = [f"{number:x}" for number in range(10_000)]
    filters = canonical([["event_type", "in", names]])
    assert filters is not None
    assert len(filters) > MAXIMUM_FILTER_BYTES
    conditions.cache_clear()
    tracemalloc.start()
    kept = conditions(filters)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert kept
    assert used * conditions.cache_parameters()["maxsize"] < 250_000_000
