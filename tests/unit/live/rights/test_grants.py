"""The rights of users: coverage of patterns by grants, and revoked subscriptions."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.rights.coverage import covers
from signalbox.live.rights.grants import Grant, GrantSet, GroupGrants, Rights, revoked
from signalbox.live.rights.principals import EVERYONE, NOBODY, GroupName, PrincipalName, principal_of
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role

REALM = ExchangeName("xs_arvados")
# All topics of up to three components: a difference between patterns shows in one of them.
WORDS = ["a", "b", "ab", "c"]
TOPICS = [RoutingKey(".".join(words)) for length in (1, 2, 3) for words in product(WORDS, repeat=length)]
uris = st.lists(st.sampled_from(["a", "b", "ab", ""]), min_size=1, max_size=3).map(".".join)
patterns = st.builds(TopicPattern, st.sampled_from([MatchPolicy.PREFIX, MatchPolicy.WILDCARD]), uris) | st.builds(
    TopicPattern, st.just(MatchPolicy.EXACT), st.sampled_from(TOPICS)
)


def rights(*grants: Grant, role: Role = Role.SUBSCRIBER, realm: ExchangeName = REALM) -> Rights:
    return Rights.in_realm(realm, user=UserName("alice"), role=role, ownership=Ownership.STRICT, grants=grants)


def read(uri: str, match: MatchPolicy = MatchPolicy.EXACT) -> Grant:
    return Grant(Right.READ, TopicPattern.parse(uri, match))


@given(patterns, patterns)
def test_a_grant_covers_only_what_it_matches(grant: TopicPattern, wanted: TopicPattern) -> None:
    outside = [topic for topic in TOPICS if wanted.matches(topic) and not grant.matches(topic)]

    assert not (covers(grant, wanted, NOBODY) and outside)


@pytest.mark.parametrize(
    ("grant", "wanted", "is_covered"),
    [
        ((MatchPolicy.EXACT, "a.b"), (MatchPolicy.EXACT, "a.b"), True),
        ((MatchPolicy.EXACT, "a.b"), (MatchPolicy.WILDCARD, "a.b"), True),
        ((MatchPolicy.EXACT, "a.b"), (MatchPolicy.PREFIX, "a.b"), False),
        ((MatchPolicy.EXACT, "a.b"), (MatchPolicy.WILDCARD, "a."), False),
        ((MatchPolicy.PREFIX, ""), (MatchPolicy.PREFIX, ""), True),
        ((MatchPolicy.PREFIX, ""), (MatchPolicy.WILDCARD, "."), True),
        ((MatchPolicy.PREFIX, "a."), (MatchPolicy.EXACT, "a.b"), True),
        ((MatchPolicy.PREFIX, "a."), (MatchPolicy.EXACT, "a"), False),
        ((MatchPolicy.PREFIX, "a."), (MatchPolicy.PREFIX, "a.b"), True),
        ((MatchPolicy.PREFIX, "a.b"), (MatchPolicy.PREFIX, "a."), False),
        ((MatchPolicy.PREFIX, "a."), (MatchPolicy.WILDCARD, "a..c"), True),
        ((MatchPolicy.PREFIX, "a.b"), (MatchPolicy.WILDCARD, "a."), False),
        ((MatchPolicy.PREFIX, "a.b"), (MatchPolicy.WILDCARD, "a.b.c"), True),
        ((MatchPolicy.WILDCARD, "a."), (MatchPolicy.EXACT, "a.b"), True),
        ((MatchPolicy.WILDCARD, "a."), (MatchPolicy.WILDCARD, "a."), True),
        ((MatchPolicy.WILDCARD, "a."), (MatchPolicy.WILDCARD, "a.b"), True),
        ((MatchPolicy.WILDCARD, "a.b"), (MatchPolicy.WILDCARD, "a."), False),
        ((MatchPolicy.WILDCARD, "a."), (MatchPolicy.WILDCARD, "a.."), False),
        ((MatchPolicy.WILDCARD, "a."), (MatchPolicy.PREFIX, "a."), False),
    ],
)
def test_coverage_of_patterns_by_grants(
    grant: tuple[MatchPolicy, str],
    wanted: tuple[MatchPolicy, str],
    is_covered: bool,  # noqa: FBT001
) -> None:
    assert covers(TopicPattern(*grant), TopicPattern(*wanted), NOBODY) is is_covered


@pytest.mark.parametrize(
    ("role", "realm", "reads", "writes"),
    [
        (Role.ADMIN, REALM, True, True),
        (Role.FEEDER, REALM, True, True),
        (Role.SOURCE, REALM, False, False),
        (Role.SOURCE, "xs_alice_logs", True, True),
        (Role.SUBSCRIBER, REALM, False, False),
        (Role.SUBSCRIBER, "xs_alice", True, True),
        (Role.SUBSCRIBER, "xs_alice_logs", True, False),
        (Role.SUBSCRIBER, "xpublic", True, False),
        (Role.SUBSCRIBER, "xs_arvados.fifo", False, False),
    ],
)
def test_rights_by_role_are_those_of_the_exchange(role: Role, realm: str, reads: bool, writes: bool) -> None:  # noqa: FBT001
    found = rights(role=role, realm=ExchangeName(realm))

    assert found.may_subscribe(TopicPattern.parse("", MatchPolicy.PREFIX)) is reads
    assert found.may_receive(RoutingKey("any.topic")) is reads
    assert found.may_publish(RoutingKey("any.topic")) is writes
    assert found.are_any is (reads or writes)


def test_a_grant_adds_topics_to_the_rights_of_the_role() -> None:
    found = rights(read("trial", MatchPolicy.PREFIX), Grant(Right.WRITE, TopicPattern.parse("trial.in")))

    assert found.are_any
    assert found.may_subscribe(TopicPattern.parse("trial.", MatchPolicy.PREFIX))
    assert not found.may_subscribe(TopicPattern.parse("tria", MatchPolicy.PREFIX))
    assert found.may_receive(RoutingKey("trial.in"))
    assert not found.may_receive(RoutingKey("other"))
    assert found.may_publish(RoutingKey("trial.in"))
    assert not found.may_publish(RoutingKey("trial.out"))


def test_a_grant_to_publish_does_not_permit_subscribing() -> None:
    found = rights(Grant(Right.WRITE, TopicPattern.parse("", MatchPolicy.PREFIX)))

    assert not found.may_subscribe(TopicPattern.parse("a"))


@pytest.mark.parametrize(
    ("found", "is_open"),
    [
        (rights(role=Role.ADMIN), True),
        (rights(role=Role.FEEDER), False),
        (rights(read("", MatchPolicy.PREFIX)), False),
        (rights(read("wamp.session.", MatchPolicy.PREFIX)), True),
        (rights(read("wamp.subscription.", MatchPolicy.PREFIX)), False),
    ],
    ids=["admin", "feeder", "everything granted", "granted by name", "another name"],
)
def test_wamps_own_topics_need_a_grant_in_their_namespace(found: Rights, is_open: bool) -> None:  # noqa: FBT001
    assert found.may_subscribe(TopicPattern.parse("wamp.session.on_join")) is is_open
    assert found.may_receive(RoutingKey("wamp.session.on_join")) is is_open
    assert found.may_administer("wamp.session.kill") is is_open


def test_a_role_that_may_read_everything_may_not_read_wamps_own_topics() -> None:
    found = rights(role=Role.FEEDER)

    assert found.may_subscribe(TopicPattern.parse("", MatchPolicy.PREFIX))
    assert not found.may_receive(RoutingKey("wamp.session.on_join"))


def test_subscriptions_without_a_covering_right_are_revoked() -> None:
    logs, records = TopicPattern.parse("logs.", MatchPolicy.PREFIX), TopicPattern.parse("records.a")

    assert revoked([logs, records], rights(read("logs.", MatchPolicy.PREFIX))) == [records]
    assert revoked([logs, records], rights()) == [logs, records]
    assert revoked([logs, records], rights(role=Role.FEEDER)) == []


@given(st.lists(patterns, max_size=6), st.lists(patterns, max_size=4))
def test_remaining_subscriptions_deliver_only_granted_topics(
    subscriptions: list[TopicPattern], granted: list[TopicPattern]
) -> None:
    found = rights(*(Grant(Right.READ, pattern) for pattern in granted))
    ended = revoked(subscriptions, found)

    left = [pattern for pattern in subscriptions if pattern not in ended]
    assert all(found.may_receive(topic) for pattern in left for topic in TOPICS if pattern.matches(topic))


LAB, OTHER_LAB = GroupName("lab"), GroupName("other-lab")
EVERYTHING = TopicPattern.parse("", MatchPolicy.PREFIX)


def of_groups(realm_grants: dict[PrincipalName, GrantSet], *groups: GroupName, **given: object) -> Rights:
    return Rights.in_realm(
        REALM,
        **{
            "user": UserName("alice"),
            "role": Role.SUBSCRIBER,
            "ownership": Ownership.STRICT,
            "groups": groups,
            "group_grants": GroupGrants(1, realm_grants),
            **given,
        },
    )


def test_a_groups_grants_are_those_of_its_members_only() -> None:
    granted = {principal_of(LAB): GrantSet((read("logs.", MatchPolicy.PREFIX),))}

    assert of_groups(granted, LAB).may_receive(RoutingKey("logs.a"))
    assert not of_groups(granted, OTHER_LAB).may_receive(RoutingKey("logs.a"))
    assert not of_groups(granted).are_any


def test_everyone_is_each_session_except_anonymous_ones() -> None:
    granted = {EVERYONE: GrantSet((read("logs.", MatchPolicy.PREFIX),))}

    assert of_groups(granted).may_receive(RoutingKey("logs.a"))
    assert not of_groups(granted, is_anonymous=True).may_receive(RoutingKey("logs.a"))


def test_one_grant_with_a_placeholder_serves_every_group() -> None:
    granted = {EVERYONE: GrantSet((read("container.{group}.", MatchPolicy.PREFIX),))}
    found = of_groups(granted, LAB, GroupName("g.h"))

    assert found.may_subscribe(TopicPattern.parse("container.lab.", MatchPolicy.PREFIX))
    assert found.may_receive(RoutingKey("container.g%2Eh.c1.log.stdout"))
    assert not found.may_subscribe(TopicPattern.parse("container.", MatchPolicy.PREFIX))
    assert not found.may_receive(RoutingKey("container.other-lab.c1.log.stdout"))


def test_a_deny_wins_over_grants_and_over_the_role() -> None:
    denies = {principal_of(LAB): GrantSet(denies=(read("logs.secret.", MatchPolicy.PREFIX),))}
    by_grant = of_groups(denies, LAB, grants=[read("logs.", MatchPolicy.PREFIX)])
    by_role = of_groups(denies, LAB, role=Role.FEEDER)

    for found in (by_grant, by_role):
        assert found.may_receive(RoutingKey("logs.a"))
        assert not found.may_receive(RoutingKey("logs.secret.a"))
        assert found.may_subscribe(TopicPattern.parse("logs.", MatchPolicy.PREFIX))
        assert not found.may_subscribe(TopicPattern.parse("logs.secret.", MatchPolicy.PREFIX))
        assert not found.may_subscribe(TopicPattern.parse("logs.secret.a"))


def test_a_deny_of_reading_permits_writing() -> None:
    found = rights(role=Role.FEEDER)
    denied = Rights(found.role_rights, (), denies=(read("a"),))

    assert denied.may_publish(RoutingKey("a"))
    assert not denied.may_receive(RoutingKey("a"))
    assert not Rights(found.role_rights, (), denies=(Grant(Right.WRITE, EVERYTHING),)).may_publish(RoutingKey("a"))


def test_a_deny_limits_administrators_and_wamps_own_procedures() -> None:
    denied = Rights(frozenset(Right), (), is_admin=True, denies=(read("wamp.session.kill"),))

    assert not denied.may_administer("wamp.session.kill")
    assert denied.may_administer("wamp.session.list")


def test_a_group_that_is_called_wamp_opens_nothing_of_wamp() -> None:
    found = of_groups({EVERYONE: GrantSet((read("{group}.", MatchPolicy.PREFIX),))}, GroupName("wamp"))

    assert not found.may_administer("wamp.session.kill")
    assert not found.may_subscribe(TopicPattern.parse("wamp.session.on_join"))


def test_the_name_in_a_token_owns_no_exchange() -> None:
    own = ExchangeName("xs_alice.fifo")

    assert rights(realm=own).may_publish(RoutingKey("a"))
    for role in (Role.SOURCE, Role.SUBSCRIBER):
        assert not Rights.of_token(own, user=UserName("alice"), role=role).role_rights


def test_the_groups_of_a_token_have_the_grants_of_groups() -> None:
    granted = {EVERYONE: GrantSet((read("container.{group}.", MatchPolicy.PREFIX), read("inbox.{user}")))}
    found = Rights.of_token(
        REALM,
        user=UserName("ann@x.org"),
        role=Role.SUBSCRIBER,
        groups=[LAB],
        group_grants=GroupGrants(1, granted),
    )

    assert found.may_receive(RoutingKey("container.lab.a"))
    assert found.may_receive(RoutingKey("inbox.ann@x%2Eorg"))
    assert not found.may_receive(RoutingKey("container.other-lab.a"))


@given(
    st.lists(patterns, max_size=4),
    st.lists(patterns, max_size=4),
    st.lists(patterns, max_size=3),
    st.sampled_from(TOPICS),
)
def test_who_may_receive_has_a_grant_and_no_deny(
    own: list[TopicPattern], of_lab: list[TopicPattern], denied: list[TopicPattern], topic: RoutingKey
) -> None:
    sets = {
        principal_of(LAB): GrantSet(tuple(Grant(Right.READ, one) for one in of_lab)),
        EVERYONE: GrantSet(denies=tuple(Grant(Right.READ, one) for one in denied)),
    }
    found = of_groups(sets, LAB, grants=[Grant(Right.READ, one) for one in own])

    is_granted = any(one.matches(topic) for one in (*own, *of_lab))
    assert found.may_receive(topic) is (is_granted and not any(one.matches(topic) for one in denied))
    subscribable = found.may_subscribe(TopicPattern(MatchPolicy.EXACT, topic))
    assert subscribable is found.may_receive(topic)


@given(st.lists(patterns, max_size=5), st.sampled_from(["", "a", "a.", "ab.c", "x"]), st.sampled_from(TOPICS))
def test_what_a_user_may_receive_has_one_readable_beginning(
    granted: list[TopicPattern], prefix: str, topic: RoutingKey
) -> None:
    found = rights(*(Grant(Right.READ, one) for one in granted), Grant(Right.WRITE, EVERYTHING))

    ranges = found.readable_beginnings(prefix)

    containing = [one for one in ranges if topic.startswith(one)]
    assert len(containing) <= 1
    assert all(one.startswith(prefix) for one in ranges)
    assert containing or not topic.startswith(prefix) or not found.may_receive(topic)


def test_a_role_that_reads_the_realm_reads_the_whole_prefix() -> None:
    assert rights(read("a.b"), role=Role.FEEDER).readable_beginnings("a.") == ["a."]
