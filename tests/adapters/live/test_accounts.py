"""Users' access to realms: in memory, and over the tables `Live` and `Exchanges`."""

from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoUsers
from signalbox.aws.live.account_items import credentials_item, grants_item
from signalbox.aws.live.accounts import DynamoAccounts, DynamoUserRights, stage_pepper
from signalbox.aws.live.connection_snapshots import DynamoConnectionSnapshots
from signalbox.aws.live.grants import DynamoGrants, DynamoGroups
from signalbox.aws.live.group_grants import CachedGroupGrants
from signalbox.aws.live.items import session_key
from signalbox.aws.live.realms import RealmSettings
from signalbox.aws.live.recent import Recent
from signalbox.aws.live.sessions import DynamoSessions
from signalbox.exchange.model.records import ExchangeRecord, LiveSettings, User
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.admin.ports import StoredGrants
from signalbox.live.identity.tokens import CLUSTER, TokenIdentity
from signalbox.live.model.state import Account, ConnectionId, SessionState, opened
from signalbox.live.ports import Accounts, RealmAccess
from signalbox.live.rights.grants import NO_RIGHTS, Grant, GrantSet, Rights
from signalbox.live.rights.principals import EVERYONE, GroupName, PrincipalName, principal_of
from signalbox.live.rights.settling import RIGHTS_KEPT_SECONDS
from signalbox.live.wamp.authentication import AuthMethod, Identity, StoredSecret
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role
from tests.fakes.aws import STORES, RawTable
from tests.fakes.exchange import MemoryExchanges, MemoryUsers
from tests.fakes.live import PEPPER, START, MemoryAccounts
from tests.fakes.recent import TwoClocks

REALM, PLAIN = ExchangeName("xs_trial.fifo"), ExchangeName("xs_plain.fifo")
ALICE, BOB, UNKNOWN = UserName("alice"), UserName("bob"), UserName("nobody")
SECRET = StoredSecret.of("a-secret", salt="salt", with_key=True)
GRANTS = (Grant(Right.READ, TopicPattern.parse("trial.", MatchPolicy.PREFIX)),)
MINUTE = timedelta(minutes=1)
LAB, CONNECTION = GroupName("lab"), ConnectionId("c=")
API = "https://arvados.example"
BY_GROUP, SECRET_TOPICS = "records.{group}.", "trial.secret."


@pytest.fixture(params=STORES)
def accounts(request: pytest.FixtureRequest) -> Accounts:
    """A realm, an exchange that is not live, `alice` with a secret and a grant, and `bob` without."""
    is_memory = request.param == "memory"
    table, live = (None, None) if is_memory else map(request.getfixturevalue, ("exchange_table", "live_table"))
    exchanges = MemoryExchanges() if is_memory else DynamoExchanges(table)
    users = MemoryUsers() if is_memory else DynamoUsers(table)
    exchanges.create(ExchangeRecord(REALM, None, START, live=LiveSettings(anonymous=BOB)))
    exchanges.create(ExchangeRecord(PLAIN, None, START))
    for name in (ALICE, BOB):
        users.put(User(name, Role.SUBSCRIBER, Ownership.STRICT, START, f"AIDA{name}"))
    if is_memory:
        return MemoryAccounts(exchanges, users, defaultdict(list, {(REALM, ALICE): list(GRANTS)}), {ALICE: SECRET})
    live.put_item(Item=grants_item(REALM, ALICE, GRANTS, version=1))
    live.put_item(Item=credentials_item(ALICE, SECRET))
    return DynamoAccounts(live, table, PEPPER)


def test_access_has_the_realms_settings_and_the_users_secret_role_and_grants(accounts) -> None:
    access = accounts.access(REALM, ALICE, now=START)

    rights = Rights.in_realm(REALM, user=ALICE, role=Role.SUBSCRIBER, ownership=Ownership.STRICT, grants=GRANTS)
    assert access == RealmAccess(LiveSettings(anonymous=BOB), Account(ALICE, Role.SUBSCRIBER, SECRET, rights))


def test_a_user_without_a_secret_gets_unguessable_credentials(accounts) -> None:
    account = accounts.access(REALM, BOB, now=START).account

    assert account.credentials == StoredSecret.decoy("bob", pepper=PEPPER)
    assert not account.rights.are_any


def test_all_functions_of_a_stage_have_the_secret_of_the_first(live_table) -> None:
    assert [stage_pepper(live_table, fresh) for fresh in ("first", "second")] == ["first", "first"]


def test_of_two_functions_that_start_at_once_one_makes_the_secret(live_table) -> None:
    class Slow(RawTable):
        """The table, at whose first read another function has not stored the secret yet."""

        def get(self, key: Any, **options: Any) -> Any:
            found = super().get(key, **options)
            stage_pepper(live_table, "first")
            return found

    assert stage_pepper(Slow(live_table.client, live_table.name), "second") == "first"


def test_an_unknown_user_has_no_account(accounts) -> None:
    assert accounts.access(REALM, UNKNOWN, now=START).account is None
    assert accounts.access(REALM, None, now=START) == RealmAccess(LiveSettings(anonymous=BOB), None)


@pytest.mark.parametrize("exchange", [PLAIN, ExchangeName("xs_nothing.fifo")])
def test_an_exchange_that_is_not_live_is_no_realm(accounts, exchange) -> None:
    assert accounts.access(exchange, BOB, now=START).live is None


def test_an_exchange_that_is_being_deleted_is_no_realm(exchange_table, live_table) -> None:
    exchanges = DynamoExchanges(exchange_table)
    made = ExchangeRecord(REALM, None, START, live=LiveSettings())
    exchanges.create(made)
    exchanges.save(replace(made, is_deleting=True), replacing=made)

    assert DynamoAccounts(live_table, exchange_table, PEPPER).access(REALM, None, now=START).live is None


@pytest.mark.parametrize("user", [ALICE, UNKNOWN])
def test_failed_logins_are_counted_even_for_unknown_users(accounts, user) -> None:
    for _ in range(3):
        accounts.count_failure(user, now=START)

    assert accounts.access(REALM, user, now=START).failures == 3


def test_failed_logins_of_another_minute_do_not_count(exchange_table, live_table) -> None:
    accounts = DynamoAccounts(live_table, exchange_table, PEPPER)
    for moment in (START, START, START + MINUTE):
        accounts.count_failure(ALICE, now=moment)

    assert accounts.access(REALM, ALICE, now=START + MINUTE).failures == 1
    assert accounts.access(REALM, ALICE, now=START + 2 * MINUTE).failures == 0


def access_rights(live_table, exchange_table, realm, user, *, is_anonymous=False, token=None) -> Rights:
    accounts = DynamoAccounts(live_table, exchange_table, PEPPER)
    return accounts.access(realm, user, now=START, is_anonymous=is_anonymous, token=token).rights


def snapshot_rights(live_table, exchange_table, realm, user, *, is_anonymous=False, token=None) -> Rights:
    method = AuthMethod.ANONYMOUS if is_anonymous else AuthMethod.TICKET
    session = replace(
        opened(CONNECTION, now=START),
        state=SessionState.JOINED,
        realm=realm,
        session=7,
        identity=Identity(user, "subscriber", method),
        token=token,
    )
    live_table.delete_item(Key=session_key(CONNECTION))
    DynamoSessions(live_table).open(session)
    return DynamoConnectionSnapshots(live_table, exchange_table).read(CONNECTION, owner=None).rights


def overview_rights(live_table, exchange_table, realm, user, *, is_anonymous=False, token=None) -> Rights:
    rights = DynamoUserRights(live_table, exchange_table)
    return rights.find(realm, user, is_anonymous=is_anonymous, token=token)


@pytest.mark.parametrize("read", [access_rights, snapshot_rights, overview_rights])
def test_rights_follow_from_groups_and_denies_wherever_they_are_read(exchange_table, live_table, read) -> None:
    settings = LiveSettings(arvados_api=API, anonymous=BOB)
    DynamoExchanges(exchange_table).create(ExchangeRecord(REALM, None, START, live=settings))
    for name in (ALICE, BOB):
        DynamoUsers(exchange_table).put(User(name, Role.SUBSCRIBER, Ownership.STRICT, START, f"AIDA{name}"))
    own, everyone = PrincipalName(ALICE), Grant(Right.READ, TopicPattern.parse("trial.all"))
    by_group, secret = (
        Grant(Right.READ, TopicPattern.parse(uri, MatchPolicy.PREFIX)) for uri in (BY_GROUP, SECRET_TOPICS)
    )
    grants = DynamoGrants(live_table)
    grants.save(REALM, own, GrantSet(GRANTS, (secret,)), replacing=StoredGrants())
    grants.save(REALM, principal_of(LAB), GrantSet((by_group,)), replacing=StoredGrants())
    grants.save(REALM, EVERYONE, GrantSet((everyone,)), replacing=StoredGrants())
    DynamoGroups(live_table).add(REALM, LAB, ALICE)

    alice, bob = (read(live_table, exchange_table, REALM, name) for name in (ALICE, BOB))
    anonymous = read(live_table, exchange_table, REALM, BOB, is_anonymous=True)
    token = TokenIdentity(CLUSTER, Role.SUBSCRIBER, ("lab", "other"), START, trust=API)
    ann = read(live_table, exchange_table, REALM, UserName("ann@x.org"), token=token)

    topics = ["trial.a", "trial.secret.a", "records.lab.a", "records.other.a", "trial.all"]
    assert [alice.may_receive(RoutingKey(topic)) for topic in topics] == [True, False, True, False, True]
    assert [bob.may_receive(RoutingKey(topic)) for topic in topics] == [False, False, False, False, True]
    assert [ann.may_receive(RoutingKey(topic)) for topic in topics] == [False, False, True, True, True]
    assert not anonymous.are_any
    assert not read(live_table, exchange_table, REALM, BOB, token=token).are_any  # the name of a user of the stage


class CountedReads:
    """The client of a table, which notes how often each key is read."""

    def __init__(self, client) -> None:
        self.client = client
        self.keys: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self.client, name)

    def batch_get_item(self, RequestItems):  # noqa: N803 - boto3's
        self.keys += [key["pk"]["S"] for wanted in RequestItems.values() for key in wanted["Keys"]]
        return self.client.batch_get_item(RequestItems=RequestItems)


def test_the_record_of_a_realm_is_read_once_a_second_and_that_of_a_user_every_time(
    exchange_table, live_table, monkeypatch
) -> None:
    DynamoExchanges(exchange_table).create(ExchangeRecord(REALM, None, START, live=LiveSettings(anonymous=ALICE)))
    DynamoUsers(exchange_table).put(User(ALICE, Role.SUBSCRIBER, Ownership.STRICT, START, "AIDAALICE"))
    reads, clock = CountedReads(live_table.client), TwoClocks()
    live_table = replace(live_table, client=reads)
    accounts = DynamoAccounts(live_table, exchange_table, PEPPER, RealmSettings(Recent(clock.now)))

    for pause in (0, RIGHTS_KEPT_SECONDS / 2, RIGHTS_KEPT_SECONDS / 2):
        clock.advance(pause)
        assert accounts.access(REALM, ALICE, now=START).live == LiveSettings(anonymous=ALICE)

    assert reads.keys.count(f"exchange#{REALM}") == 2
    assert reads.keys.count(f"user#{ALICE}") == 3


def test_the_version_of_the_grants_of_groups_is_read_once_a_second(exchange_table, live_table, monkeypatch) -> None:
    DynamoUsers(exchange_table).put(User(ALICE, Role.SUBSCRIBER, Ownership.STRICT, START, "AIDAALICE"))
    everyone = Grant(Right.READ, TopicPattern.parse("trial.all"))
    DynamoGrants(live_table).save(REALM, EVERYONE, GrantSet((everyone,)), replacing=StoredGrants())
    reads, clock = CountedReads(live_table.client), TwoClocks()
    live_table = replace(live_table, client=reads)
    realms, cache = RealmSettings(Recent(clock.now)), CachedGroupGrants(Recent(clock.now))
    accounts = DynamoAccounts(live_table, exchange_table, PEPPER, realms, cache)
    rights = DynamoUserRights(live_table, exchange_table, group_grants=accounts.group_grants)

    for pause in (0, RIGHTS_KEPT_SECONDS / 2, RIGHTS_KEPT_SECONDS / 2):
        clock.advance(pause)
        assert accounts.access(REALM, ALICE, now=START).rights.may_receive(RoutingKey("trial.all"))
        assert rights.find(REALM, ALICE).may_receive(RoutingKey("trial.all"))

    assert reads.keys.count(f"group-grants#{REALM}") == 2


def test_cached_settings_need_no_read(exchange_table, live_table, monkeypatch) -> None:
    DynamoExchanges(exchange_table).create(ExchangeRecord(REALM, None, START, live=LiveSettings()))
    reads, clock = CountedReads(live_table.client), TwoClocks()
    live_table = replace(live_table, client=reads)
    accounts = DynamoAccounts(live_table, exchange_table, PEPPER, RealmSettings(Recent(clock.now)))

    found = [accounts.access(REALM, None, now=START).live for _ in range(2)]

    assert (found, len(reads.keys)) == ([LiveSettings()] * 2, 1)


def test_a_missing_realm_is_not_cached(exchange_table, live_table) -> None:
    accounts = DynamoAccounts(live_table, exchange_table, PEPPER, RealmSettings(Recent(TwoClocks().now)))
    assert accounts.access(REALM, None, now=START).live is None

    DynamoExchanges(exchange_table).create(ExchangeRecord(REALM, None, START, live=LiveSettings()))

    assert accounts.access(REALM, None, now=START).live == LiveSettings()


def test_the_cache_of_realms_is_bounded(exchange_table, live_table, monkeypatch) -> None:
    monkeypatch.setattr("signalbox.aws.live.recent.MAXIMUM_VALUES", 1)
    realms = RealmSettings(Recent(TwoClocks().now))
    names = [REALM, ExchangeName("xs_other.fifo")]
    for name in names:
        DynamoExchanges(exchange_table).create(ExchangeRecord(name, None, START, live=LiveSettings()))
        DynamoAccounts(live_table, exchange_table, PEPPER, realms).access(name, None, now=START)

    assert [realms.known(name) for name in names] == [None, LiveSettings()]


def test_errors_propagate(live_table, exchange_table) -> None:
    live_table.delete()

    with pytest.raises(ClientError):
        DynamoAccounts(live_table, exchange_table, PEPPER).count_failure(ALICE, now=START)


TOKEN = TokenIdentity("lab", Role.SOURCE, ("imaging",), START + MINUTE)


def test_a_token_s_user_needs_no_record(accounts) -> None:
    access = accounts.access(REALM, UNKNOWN, now=START, token=TOKEN)

    assert access.live == LiveSettings(anonymous=BOB)
    assert (access.account.name, access.account.role) == (UNKNOWN, Role.SOURCE)
    assert access.account.credentials == StoredSecret.decoy(UNKNOWN, pepper=PEPPER)
    assert not access.rights.are_any


def test_a_token_s_user_with_the_name_of_a_user_of_the_stage_has_no_account(accounts) -> None:
    assert accounts.access(REALM, ALICE, now=START, token=TOKEN).account is None
    assert accounts.access(REALM, None, now=START, token=TOKEN).account is None


def test_tokens_from_before_an_end_are_known(accounts) -> None:
    assert accounts.tokens_ended_at(REALM, UNKNOWN) is None

    accounts.end_tokens(REALM, UNKNOWN, now=START + timedelta(seconds=1, milliseconds=900))

    assert accounts.tokens_ended_at(REALM, UNKNOWN) == START + timedelta(seconds=1)
    assert accounts.tokens_ended_at(PLAIN, UNKNOWN) is None
    assert accounts.tokens_ended_at(REALM, ALICE) is None


def test_the_rights_of_a_token_s_user_come_from_grants_to_the_name(live_table, exchange_table) -> None:
    DynamoUsers(exchange_table).put(User(ALICE, Role.SUBSCRIBER, Ownership.STRICT, START, "AIDAalice"))
    for name in (ALICE, UNKNOWN):
        live_table.put_item(Item=grants_item(REALM, name, GRANTS, version=1))
    rights = DynamoUserRights(live_table, exchange_table)

    assert rights.find(REALM, UNKNOWN, token=TOKEN).may_receive(RoutingKey("trial.a"))
    assert not rights.find(REALM, UNKNOWN, token=TOKEN).may_receive(RoutingKey("other"))
    assert rights.find(REALM, ALICE, token=TOKEN) == NO_RIGHTS
    assert rights.find(REALM, UNKNOWN) == NO_RIGHTS
    assert rights.find(ExchangeName("xpublic.fifo"), BOB, token=TOKEN).may_receive(RoutingKey("a"))


@pytest.mark.parametrize("name", ["xs_alice.fifo", "xs_alice_logs.fifo", "q_alice", "xl_alice"])
def test_a_token_s_user_owns_nothing_by_name(name) -> None:
    assert not Rights.of_token(ExchangeName(name), user=ALICE, role=Role.SOURCE, grants=()).are_any
