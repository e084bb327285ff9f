"""Grants, groups and secrets in DynamoDB: writes are found, and concurrent changes are not overwritten."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signalbox.aws.live import grants as adapter
from signalbox.aws.live import group_grants as module
from signalbox.aws.live.account_items import CREDENTIALS, grants_of
from signalbox.aws.live.grants import DynamoGrants, DynamoGroups, DynamoSecrets
from signalbox.aws.live.group_grants import CachedGroupGrants
from signalbox.aws.live.items import ended_tokens_key, grants_key, group_grants_version_key, principal_key, secret_key
from signalbox.aws.live.recent import Recent
from signalbox.aws.shared.settings import BACKOFF
from signalbox.live.admin.ports import GrantsTooLarge, StoredGrants, TooManyGroups
from signalbox.live.rights.grants import Grant, GrantSet, GroupGrants
from signalbox.live.rights.principals import EVERYONE, GroupName, principal_of
from signalbox.live.rights.settling import RIGHTS_KEPT_SECONDS
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.permissions import Right
from tests.fakes.aws import live_table  # noqa: F401 - a fixture
from tests.fakes.recent import TwoClocks

REALM, BOB, LAB = "xtrial.fifo", "bob", GroupName("lab")
LOGS, STATES, SECRET_LOGS = (
    Grant(Right.READ, TopicPattern(MatchPolicy.PREFIX, uri)) for uri in ("logs.", "states.", "logs.secret.")
)
WRITING = Grant(Right.WRITE, TopicPattern(MatchPolicy.PREFIX, "logs."))


@pytest.fixture
def grants(live_table):  # noqa: F811
    return DynamoGrants(live_table)


@pytest.fixture
def groups(live_table):  # noqa: F811
    return DynamoGroups(live_table)


@pytest.mark.parametrize("principal", [BOB, principal_of(LAB), EVERYONE])
def test_before_anything_is_granted_there_is_nothing(grants, principal):
    assert grants.find(REALM, principal) == StoredGrants()
    assert grants.of_groups(REALM) == GroupGrants()


@pytest.mark.parametrize("principal", [BOB, "ann@x.org", principal_of(LAB), EVERYONE])
def test_stored_grants_and_denies_are_found_under_the_next_version(grants, principal):
    assert grants.save(REALM, principal, GrantSet((LOGS,)), replacing=StoredGrants())
    kept = grants.find(REALM, principal)
    assert kept == StoredGrants((LOGS,), 1)

    assert grants.save(REALM, principal, GrantSet((LOGS, STATES), (SECRET_LOGS,)), replacing=kept)
    found = grants.find(REALM, principal)
    assert (set(found.grants), found.denies, found.version) == ({LOGS, STATES}, (SECRET_LOGS,), 2)

    assert grants.save(REALM, principal, GrantSet((LOGS,)), replacing=found)
    assert grants.find(REALM, principal) == StoredGrants((LOGS,), 3)


@pytest.mark.parametrize("principal", [BOB, EVERYONE])
def test_grants_keep_when_the_newest_of_their_commands_was_sent(grants, principal):
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    grants.save(REALM, principal, GrantSet((LOGS,)), replacing=StoredGrants(), sent_at=at)

    kept = grants.find(REALM, principal)
    grants.save(REALM, principal, GrantSet(), replacing=kept, sent_at=at - timedelta(seconds=1))

    assert (kept.changed_at, grants.find(REALM, principal).changed_at) == (at, at)


def test_groups_and_secrets_keep_when_their_last_command_was_sent(groups, live_table):  # noqa: F811
    first, second, third = (datetime(2026, 3, 1, 12, minute, tzinfo=UTC) for minute in range(3))
    secrets = DynamoSecrets(live_table)
    assert (groups.changed_at(REALM, BOB), secrets.changed_at(BOB)) == (None, None)

    found = []
    for change, at in ((groups.add, first), (groups.add, second), (groups.remove, third)):
        change(REALM, LAB, BOB, sent_at=at)
        found.append(groups.changed_at(REALM, BOB))
    secrets.put({BOB: StoredSecret.of("a", salt="b", with_key=False)}, sent_at=first)

    assert found == [first, second, third]
    assert secrets.changed_at(BOB) == first


def test_the_realms_in_which_a_user_has_rights_are_found_by_hundreds(grants, groups, monkeypatch):
    of_grants, of_denies, of_groups, former = "xs_a.fifo", "xs_b.fifo", "xs_c.fifo", "xs_d.fifo"
    grants.save(of_grants, BOB, GrantSet((LOGS,)), replacing=StoredGrants())
    grants.save(of_denies, BOB, GrantSet((), (SECRET_LOGS,)), replacing=StoredGrants())
    groups.add(of_groups, LAB, BOB)
    grants.save(former, BOB, GrantSet((LOGS,), (SECRET_LOGS,)), replacing=StoredGrants())
    grants.save(former, BOB, GrantSet(), replacing=grants.find(former, BOB))
    groups.add(former, LAB, BOB)
    groups.remove(former, LAB, BOB)
    grants.save("xs_e.fifo", "ann", GrantSet((LOGS,)), replacing=StoredGrants())
    others = [f"xs_{number}.fifo" for number in range(195)]
    sizes, batch_get_item = [], grants.table.client.batch_get_item

    def counted(**given):
        sizes.append(len(given["RequestItems"][grants.table.name]["Keys"]))
        return batch_get_item(**given)

    monkeypatch.setattr(grants.table.client, "batch_get_item", counted)

    asked = [*others, of_grants, of_denies, of_groups, former, "xs_e.fifo"]
    assert grants.realms_of(BOB, asked) == [of_grants, of_denies, of_groups]
    assert sizes == [100] * 4


@pytest.mark.parametrize("principal", [BOB, principal_of(LAB)])
def test_concurrently_changed_grants_are_not_overwritten(grants, principal):
    grants.save(REALM, principal, GrantSet((LOGS,)), replacing=StoredGrants())

    assert not grants.save(REALM, principal, GrantSet((STATES,)), replacing=StoredGrants())
    assert not grants.save(REALM, principal, GrantSet((STATES,)), replacing=StoredGrants((LOGS,), 2))
    assert grants.find(REALM, principal).grants == (LOGS,)
    assert grants.of_groups(REALM).version == (1 if principal != BOB else 0)


def test_an_older_version_reads_no_grant_that_a_deny_limits(grants, live_table):  # noqa: F811
    granted = GrantSet((LOGS, STATES, WRITING), (SECRET_LOGS,))
    grants.save(REALM, BOB, granted, replacing=StoredGrants())

    # What a version without denies reads is this item.
    item = live_table.get_item(Key=grants_key(REALM, BOB))["Item"]
    assert grants_of(item) == (STATES, WRITING)


def test_a_deny_survives_a_grant_by_an_older_version(grants, live_table):  # noqa: F811
    grants.save(REALM, BOB, GrantSet((LOGS,), (SECRET_LOGS,)), replacing=StoredGrants())
    item = live_table.get_item(Key=grants_key(REALM, BOB))["Item"]
    live_table.put_item(Item=item | {"grants": [{"right": "read", "match": "exact", "uri": "a"}], "version": 2})

    found = grants.find(REALM, BOB)
    assert [grant.pattern.uri for grant in found.grants] == ["a", "logs."]
    assert (found.denies, found.version) == ((SECRET_LOGS,), 2)


def test_the_users_with_grants_of_their_own_are_listed(grants):
    grants.save(REALM, BOB, GrantSet((LOGS,)), replacing=StoredGrants())
    grants.save(REALM, "ann@x.org", GrantSet((), (LOGS,)), replacing=StoredGrants())
    grants.save(REALM, principal_of(LAB), GrantSet((LOGS,)), replacing=StoredGrants())
    assert grants.grantees(REALM) == ["ann@x.org", BOB]

    grants.save(REALM, BOB, GrantSet(), replacing=grants.find(REALM, BOB))
    assert grants.grantees(REALM) == ["ann@x.org"]


def test_the_grants_of_all_groups_of_a_realm_are_read_together(grants):
    grants.save(REALM, principal_of(LAB), GrantSet((LOGS,)), replacing=StoredGrants())
    grants.save(REALM, EVERYONE, GrantSet((), (SECRET_LOGS,)), replacing=StoredGrants())
    grants.save("xother.fifo", EVERYONE, GrantSet((STATES,)), replacing=StoredGrants())

    expected: Mapping[str, GrantSet] = {"@lab": GrantSet((LOGS,)), "@everyone": GrantSet((), (SECRET_LOGS,))}
    assert grants.of_groups(REALM) == GroupGrants(2, expected)

    grants.save(REALM, EVERYONE, GrantSet(), replacing=grants.find(REALM, EVERYONE))
    assert grants.of_groups(REALM) == GroupGrants(3, {"@lab": GrantSet((LOGS,))})


def test_a_thousand_groups_have_grants(grants):
    for number in range(0, 1_000, 50):
        principal = principal_of(GroupName(f"zzzzz-j7d0g-{number:015d}"))
        assert grants.save(REALM, principal, GrantSet((LOGS,) * 50), replacing=StoredGrants())

    assert sum(len(one.grants) for one in grants.of_groups(REALM).by_principal.values()) == 1_000


def test_grants_that_fit_into_no_item_are_refused(grants):
    many = [Grant(Right.READ, TopicPattern(MatchPolicy.EXACT, f"{'a' * 200}.{number}")) for number in range(150)]
    with pytest.raises(GrantsTooLarge, match=r"the grants of '@lab' in 'xtrial\.fifo' take"):
        grants.save(REALM, principal_of(LAB), GrantSet(tuple(many)), replacing=StoredGrants())

    assert grants.save(REALM, principal_of(LAB), GrantSet(tuple(many[:120])), replacing=StoredGrants())
    assert len(grants.find(REALM, principal_of(LAB)).grants) == 120


def test_members_of_groups_are_listed_and_are_groups_of_the_user(groups):
    assert groups.add(REALM, LAB, BOB)
    assert not groups.add(REALM, LAB, BOB)
    assert groups.add(REALM, LAB, "ann@x.org")
    assert groups.add(REALM, GroupName("lab2"), BOB)

    assert groups.of_user(REALM, BOB) == {"lab", "lab2"}
    assert groups.of_user("xother.fifo", BOB) == frozenset()
    assert groups.members(REALM, LAB) == [("lab", "ann@x.org"), ("lab", BOB)]
    assert groups.members(REALM) == [("lab", "ann@x.org"), ("lab", BOB), ("lab2", BOB)]

    assert groups.remove(REALM, LAB, BOB)
    assert not groups.remove(REALM, LAB, BOB)
    assert groups.of_user(REALM, BOB) == {"lab2"}
    assert groups.members(REALM, LAB) == [("lab", "ann@x.org")]


def test_the_number_of_groups_of_a_user_is_limited(groups, monkeypatch):
    monkeypatch.setattr(adapter, "MAXIMUM_GROUPS", 1)
    groups.add(REALM, LAB, BOB)

    with pytest.raises(TooManyGroups, match="is in 1 groups"):
        groups.add(REALM, GroupName("lab2"), BOB)
    assert groups.members(REALM) == [("lab", BOB)]


def test_the_names_of_the_groups_of_a_user_take_so_many_bytes(groups, monkeypatch):
    monkeypatch.setattr(adapter, "MAXIMUM_BYTES", 8)
    groups.add(REALM, LAB, BOB)

    with pytest.raises(TooManyGroups, match="would take 9 bytes; they may take 8"):
        groups.add(REALM, GroupName("grün1"), BOB)
    assert groups.members(REALM) == [("lab", BOB)]


def test_a_thousand_groups_of_a_cluster_fit(live_table):  # noqa: F811
    names = {f"zzzzz-j7d0g-{number:015d}" for number in range(adapter.MAXIMUM_GROUPS - 1)}
    live_table.put_item(Item=principal_key(REALM, BOB) | {"groups": names})

    assert DynamoGroups(paced(live_table, [])).add(REALM, GroupName("zzzzz-j7d0g-aaaaaaaaaaaaaaa"), BOB)


def paced(table, pauses):
    """Return a table whose pauses are noted instead."""
    clock = SimpleNamespace(sleep=pauses.append)
    return replace(table, backoff=replace(BACKOFF, clock=clock))


def test_changes_of_large_items_take_as_long_as_their_units_of_the_table(live_table):  # noqa: F811
    pauses: list[float] = []
    table = paced(live_table, pauses)
    groups, grants = DynamoGroups(table), DynamoGrants(table)
    groups.add(REALM, LAB, BOB)
    assert pauses == []
    names = {f"{number:02d}" + "x" * 126 for number in range(80)}
    live_table.put_item(Item=principal_key(REALM, BOB) | {"groups": names})

    assert groups.add(REALM, LAB, BOB)
    assert not groups.add(REALM, LAB, BOB, sent_at=datetime.now(UTC))  # which writes the time of the command
    groups.remove(REALM, LAB, BOB)
    many = [Grant(Right.READ, TopicPattern(MatchPolicy.EXACT, f"{'a' * 200}.{number}")) for number in range(100)]
    grants.save(REALM, EVERYONE, GrantSet(tuple(many)), replacing=StoredGrants())

    assert [round(pause, 3) for pause in pauses] == [0.02, 0.02, 0.02, 0.049]


def test_all_groups_of_a_user_end_with_one_write_of_their_item(groups):
    for number in range(30):
        groups.add(REALM, GroupName(f"lab{number}"), BOB)
    groups.add(REALM, LAB, "ann@x.org")

    groups.remove_all(REALM, BOB, sorted(groups.of_user(REALM, BOB)))
    groups.remove_all(REALM, BOB, [])

    assert groups.of_user(REALM, BOB) == frozenset()
    assert groups.members(REALM) == [("lab", "ann@x.org")]


def test_groups_and_denies_of_a_user_do_not_overwrite_each_other(grants, groups):
    groups.add(REALM, LAB, BOB)
    grants.save(REALM, BOB, GrantSet((LOGS,), (SECRET_LOGS,)), replacing=StoredGrants())
    groups.add(REALM, GroupName("lab2"), BOB)

    assert groups.of_user(REALM, BOB) == {"lab", "lab2"}
    assert grants.find(REALM, BOB) == StoredGrants((LOGS,), 1, (SECRET_LOGS,))


def cached(cache, table):
    """Return the cached grants of groups, read again if a function would."""
    known = cache.known(REALM)
    if known is not None:
        return known
    read_at = cache.now()
    item = table.get(group_grants_version_key(REALM))
    return cache.read(table, REALM, item, read_at=read_at)


def test_cached_grants_are_checked_once_a_second_and_queried_only_after_a_change(
    grants,
    live_table,  # noqa: F811
):
    clock, calls = TwoClocks(), Counter()
    cache = CachedGroupGrants(Recent(clock.now))
    live_table.client.meta.events.register("before-call", lambda model, **_: calls.update([model.name]))

    assert cached(cache, live_table) == GroupGrants()
    grants.save(REALM, EVERYONE, GrantSet((LOGS,)), replacing=StoredGrants())
    assert cached(cache, live_table) == GroupGrants()
    for _ in range(2):
        clock.advance(RIGHTS_KEPT_SECONDS)
        assert cached(cache, live_table) == GroupGrants(1, {EVERYONE: GrantSet((LOGS,))})

    assert calls["Query"] == 1


def test_the_cache_of_realms_is_bounded(grants, live_table, monkeypatch):  # noqa: F811
    monkeypatch.setattr(module, "MAXIMUM_GRANTS", 5)
    cache, realms = CachedGroupGrants(), (REALM, "xother.fifo")
    for realm in realms:
        grants.save(realm, EVERYONE, GrantSet((LOGS,)), replacing=StoredGrants())
        for _ in range(2):
            assert cache.at_version(live_table, realm, {"version": 1}).by_principal

    # Only the newest is in the cache, so the grants of the other are queried again.
    grants.save(REALM, EVERYONE, GrantSet(), replacing=grants.find(REALM, EVERYONE))
    assert [bool(cache.at_version(live_table, realm, {"version": 1}).by_principal) for realm in realms[::-1]] == [
        True,
        False,
    ]


patterns = st.builds(
    Grant,
    st.sampled_from([Right.READ, Right.WRITE]),
    st.builds(TopicPattern, st.sampled_from(MatchPolicy), st.sampled_from(["a", "a.b", "a.{group}.c", "b.{user}"])),
)


@given(st.lists(patterns, unique=True, max_size=5), st.lists(patterns, unique=True, max_size=3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_grants_and_denies_are_found_as_stored(live_table, granted, denied):  # noqa: F811
    grants = DynamoGrants(live_table)
    for principal in (BOB, principal_of(LAB)):
        kept = GrantSet(tuple(granted), tuple(denied))
        assert grants.save(REALM, principal, kept, replacing=grants.find(REALM, principal))

        found = grants.find(REALM, principal)
        assert (set(found.grants), set(found.denies)) == (set(granted), set(denied))


def test_a_secret_replaces_the_one_before_until_it_is_deleted(live_table):  # noqa: F811
    secrets, table = DynamoSecrets(live_table), live_table
    first, second = (StoredSecret.of(secret, salt="5a17", with_key=True) for secret in ("one", "two"))

    secrets.put({BOB: first})
    secrets.put({BOB: second})
    assert CREDENTIALS.read(table.get_item(Key=secret_key(BOB))["Item"]) == second

    for _ in range(2):
        secrets.remove(BOB, [REALM], now=datetime.fromtimestamp(7.9, UTC))
    assert "Item" not in table.get_item(Key=secret_key(BOB))
    assert table.get_item(Key=ended_tokens_key(REALM, BOB))["Item"]["ended_at"] == 7


def test_the_item_of_groups_is_apart_from_the_users_grants(groups, live_table):  # noqa: F811
    groups.add(REALM, LAB, BOB)

    assert live_table.get_item(Key=principal_key(REALM, BOB))["Item"]["groups"] == {"lab"}
    assert "Item" not in live_table.get_item(Key=grants_key(REALM, BOB))
