"""The `wamp.subscription.*` procedures over given subscriptions."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest

from signalbox.live.log.history_request import InvalidArgument
from signalbox.live.procedures import subscription_meta
from signalbox.live.procedures.calls import NoSuchSubscription
from signalbox.live.procedures.subscription_meta import RealmSubscription
from signalbox.live.wamp.messages import Payload, SessionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

CREATED = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
EXACT = TopicPattern.parse("logs.a")
PREFIX = TopicPattern.parse("logs.", MatchPolicy.PREFIX)
WILDCARD = TopicPattern.parse("logs.", MatchPolicy.WILDCARD)
OTHER = TopicPattern.parse("other")
SESSIONS = frozenset({SessionId(9), SessionId(7)})
REALM = [RealmSubscription(pattern, CREATED, SESSIONS) for pattern in (EXACT, PREFIX, WILDCARD, OTHER)]


ANSWERS: dict[str, Callable[[Payload, Sequence[RealmSubscription]], Payload]] = {
    "lookup": subscription_meta.lookup,
    "match": subscription_meta.match,
    "get": subscription_meta.get,
    "list_subscribers": subscription_meta.list_subscribers,
    "count_subscribers": subscription_meta.count_subscribers,
}


def ask(procedure: str, *arguments: object) -> Payload:
    return ANSWERS[procedure](Payload(arguments), REALM)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("logs.a",), EXACT.subscription_id),
        (("logs.a", None), EXACT.subscription_id),
        (("logs.", {"match": "prefix"}), PREFIX.subscription_id),
        (("logs.", {"match": "wildcard"}), WILDCARD.subscription_id),
        (("logs.",), None),
        (("logs.a", {"match": "prefix"}), None),
        (("not a uri",), None),
    ],
)
def test_a_subscription_is_looked_up_by_its_pattern(arguments: tuple[object, ...], found: int | None) -> None:
    assert ask("lookup", *arguments) == Payload((found,))


def test_subscriptions_are_found_by_a_matching_topic() -> None:
    assert ask("match", "logs.a") == Payload(
        ([EXACT.subscription_id, PREFIX.subscription_id, WILDCARD.subscription_id],)
    )
    assert ask("match", "nothing.here") == Payload((None,))


def test_a_subscription_is_described() -> None:
    assert ask("get", PREFIX.subscription_id) == Payload(
        (
            {
                "id": PREFIX.subscription_id,
                "created": "2026-11-21T20:00:00.000Z",
                "uri": "logs.",
                "match": "prefix",
            },
        )
    )


def test_subscribers_are_listed_and_counted() -> None:
    assert ask("list_subscribers", EXACT.subscription_id) == Payload(([7, 9],))
    assert ask("count_subscribers", EXACT.subscription_id) == Payload((2,))


@pytest.mark.parametrize("procedure", ["get", "list_subscribers", "count_subscribers"])
def test_an_unknown_subscription_is_refused(procedure: str) -> None:
    with pytest.raises(NoSuchSubscription):
        ask(procedure, 5)


@pytest.mark.parametrize(
    ("procedure", "arguments", "problem"),
    [
        ("lookup", (), "arguments[0]: expected a topic, not None"),
        ("match", (5,), "arguments[0]: expected a topic, not 5"),
        ("lookup", ("a" * 256,), "arguments[0]: has 256 bytes of UTF-8; at most 255 are allowed"),
        ("lookup", ("\ud800",), "arguments[0]: has half of a surrogate pair, which UTF-8 cannot encode"),
        ("lookup", ("a", "prefix"), "arguments[1]: expected the options of SUBSCRIBE, not 'prefix'"),
        (
            "lookup",
            ("a", {"match": "regex"}),
            "options.match: expected one of exact, prefix, wildcard, not 'regex'",
        ),
        ("get", (), "arguments[0]: expected the id of a subscription, not None"),
        ("count_subscribers", (True,), "arguments[0]: expected the id of a subscription, not True"),
    ],
)
def test_invalid_arguments_are_refused(procedure: str, arguments: tuple[object, ...], problem: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        ask(procedure, *arguments)

    assert str(refused.value) == problem
