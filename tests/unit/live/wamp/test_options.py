"""Options of SUBSCRIBE and PUBLISH, and audiences."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.documents import shown
from signalbox.live.wamp.audience import UNRESTRICTED, Audience, Listener
from signalbox.live.wamp.messages import Dictionary, PublicationId, SessionId
from signalbox.live.wamp.options import (
    AfterPublication,
    AfterSequence,
    AfterTime,
    AfterTopicSequences,
    BackfillStart,
    InvalidOptions,
    LastEvents,
    PublishOptions,
    SubscribeOptions,
    history_option,
    is_acknowledged,
)
from signalbox.live.wamp.patterns import MatchPolicy

ME = SessionId(7)
AFTER = "expected a sequence number, a time with a time zone, or an object of `since` and up to 1,250 `topics`"
ids = st.integers(1, 4).map(SessionId)
names = st.sampled_from(["alice", "bob"])
roles = st.sampled_from(["source", "admin"])
listeners = st.builds(Listener, ids, names, roles)


def some(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | st.lists(values, max_size=2)


lists = st.fixed_dictionaries(
    {},
    optional={
        "eligible": some(ids),
        "eligible_authid": some(names),
        "eligible_authrole": some(roles),
        "exclude": some(ids),
        "exclude_authid": some(names),
        "exclude_authrole": some(roles),
    },
)


@given(lists, st.none() | st.booleans(), listeners, ids)
def test_allow_and_deny_lists_follow_the_specification(
    options: dict[str, list[object] | None],
    exclude_me: bool | None,  # noqa: FBT001
    listener: Listener,
    publisher: SessionId,
) -> None:
    """Advanced profile, «Subscriber Black- and Whitelisting», 1 to 6, and «Publisher Exclusion»."""
    present = {name: value for name, value in options.items() if value is not None}
    statements = [
        "eligible" not in present or listener.session in present["eligible"],
        "eligible_authid" not in present or listener.authid in present["eligible_authid"],
        "eligible_authrole" not in present or listener.authrole in present["eligible_authrole"],
        "exclude" not in present or listener.session not in present["exclude"],
        "exclude_authid" not in present or listener.authid not in present["exclude_authid"],
        "exclude_authrole" not in present or listener.authrole not in present["exclude_authrole"],
        listener.session != publisher or exclude_me is False,
    ]

    audience = PublishOptions.parse({**options, "exclude_me": exclude_me}, publisher=publisher).audience

    assert audience.admits(listener) is all(statements)
    assert audience.names_sessions is ("eligible" in present or "exclude" in present)


def test_an_audience_without_lists_admits_every_session() -> None:
    assert UNRESTRICTED.admits(Listener(ME, "alice", "source"))


def test_by_default_a_publication_excludes_its_publisher_and_is_unacknowledged() -> None:
    assert PublishOptions.parse({}, publisher=ME) == PublishOptions(Audience(excluded_publisher=ME))


def test_every_publish_option_is_parsed() -> None:
    options = {"acknowledge": True, "exclude_me": False, "disclose_me": True, "retain": True, "_unknown": 1}

    assert PublishOptions.parse(options, publisher=ME) == PublishOptions(
        UNRESTRICTED, acknowledge=True, disclose_me=True, retain=True
    )


def test_all_problems_of_publish_options_are_reported() -> None:
    options = {"acknowledge": 1, "exclude": [0], "eligible": 5, "eligible_authid": [3], "exclude_me": "no"}

    with pytest.raises(InvalidOptions) as refused:
        PublishOptions.parse(options, publisher=ME)

    assert str(refused.value).splitlines() == [
        "options.exclude_me: expected true or false, not 'no'",
        "options.eligible: expected a list of session ids, not 5",
        "options.eligible_authid[0]: expected a text, not 3",
        "options.exclude: expected a list of session ids, not [0]",
        "options.acknowledge: expected true or false, not 1",
    ]


@pytest.mark.parametrize(
    ("options", "expected"), [({"acknowledge": True}, True), ({"acknowledge": 1}, False), ({}, False)]
)
def test_only_true_requests_an_acknowledgement(options: Dictionary, expected: bool) -> None:  # noqa: FBT001
    """Basic profile: integers MUST NOT be used instead of boolean values."""
    assert is_acknowledged(options) is expected


@pytest.mark.parametrize(
    ("options", "parsed"),
    [
        ({}, SubscribeOptions()),
        ({"match": None, "get_retained": None, "_history": None, "x": 1}, SubscribeOptions()),
        ({"match": "prefix", "get_retained": True}, SubscribeOptions(MatchPolicy.PREFIX, get_retained=True)),
        ({"match": "wildcard", "_history": {"last": 5}}, SubscribeOptions(MatchPolicy.WILDCARD, history=LastEvents(5))),
    ],
)
def test_subscribe_options_have_match_policy_and_backfill(options: Dictionary, parsed: SubscribeOptions) -> None:
    assert SubscribeOptions.parse(options) == parsed


@pytest.mark.parametrize(
    ("wish", "past"),
    [
        ({"last": 100}, LastEvents(100)),
        ({"after": 0}, AfterSequence(0)),
        ({"after": 17}, AfterSequence(17)),
        ({"after": "2026-11-21T20:15:00Z"}, AfterTime(datetime(2026, 11, 21, 20, 15, tzinfo=UTC))),
        ({"after": "2026-11-21T21:15:00.5+01:00"}, AfterTime(datetime(2026, 11, 21, 20, 15, 0, 500_000, UTC))),
        (
            {"after": {"since": "2026-11-21T20:15:00Z", "topics": {"a.b": 0, "a.c": 17}}},
            AfterTopicSequences(datetime(2026, 11, 21, 20, 15, tzinfo=UTC), {"a.b": 0, "a.c": 17}),
        ),
        ({"after_publication": 17}, AfterPublication(PublicationId(17))),
    ],
)
def test_each_form_of_the_history_option_is_parsed(wish: Dictionary, past: BackfillStart) -> None:
    assert SubscribeOptions.parse({"_history": wish}).history == past
    assert SubscribeOptions.parse({"_history": history_option(past)}).history == past


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"match": "regex"}, "options.match: expected one of exact, prefix, wildcard, not 'regex'"),
        ({"match": 1}, "options.match: expected a text, not 1"),
        ({"get_retained": "yes"}, "options.get_retained: expected true or false, not 'yes'"),
        ({"_history": 5}, "options._history: expected an object, not 5"),
        ({"_history": {}}, "options._history: expected one of last, after, after_publication, not {}"),
        (
            {"_history": {"since": 1}},
            "options._history: expected one of last, after, after_publication, not {'since': 1}",
        ),
        ({"_history": {"last": 0}}, "options._history.last: expected an integer of at least 1, not 0"),
        ({"_history": {"last": True}}, "options._history.last: expected an integer of at least 1, not True"),
        (
            {"_history": {"after": "2026-11-21T20:15:00"}},
            f"options._history.after: {AFTER}, not '2026-11-21T20:15:00'",
        ),
        (
            {"_history": {"after": "yesterday"}},
            f"options._history.after: {AFTER}, not 'yesterday'",
        ),
        (
            {"_history": {"after": -1}},
            f"options._history.after: {AFTER}, not -1",
        ),
        ({"_history": {"after": {}}}, f"options._history.after: {AFTER}, not {{}}"),
        (
            {"_history": {"after": {"since": "2026-11-21T20:15:00", "topics": {}}}},
            f"options._history.after: {AFTER}, not {{'since': '2026-11-21T20:15:00', 'topics': {{}}}}",
        ),
        (
            {"_history": {"after": {"since": "2026-11-21T20:15:00Z", "topics": 5}}},
            f"options._history.after: {AFTER}, not {{'since': '2026-11-21T20:15:00Z', 'topics': 5}}",
        ),
        (
            {"_history": {"after": {"since": "2026-11-21T20:15:00Z", "topics": {"a": -1}}}},
            f"options._history.after: {AFTER}, not {{'since': '2026-11-21T20:15:00Z', 'topics': {{'a': -1}}}}",
        ),
        *(
            (
                {"_history": {"after": {"since": "2026-11-21T20:15:00Z", "topics": topics}}},
                f"options._history.after: {AFTER}, not {shown({'since': '2026-11-21T20:15:00Z', 'topics': topics})}",
            )
            for topics in ({"a" * 256: 1}, {"\ud800": 1}, {str(number): 1 for number in range(1_251)})
        ),
        (
            {"_history": {"after_publication": "x"}},
            "options._history.after_publication: expected a publication id, not 'x'",
        ),
        (
            {"match": "prefix", "_history": {"after": 3}},
            "options._history.after: a sequence number needs an exact topic; use a time or a publication",
        ),
    ],
)
def test_invalid_subscribe_options_are_refused(options: Dictionary, problem: str) -> None:
    with pytest.raises(InvalidOptions) as refused:
        SubscribeOptions.parse(options)

    assert problem in str(refused.value).splitlines()
