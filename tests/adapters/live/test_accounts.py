"""Users' access to realms: in memory, and over the tables `Live` and `Exchanges`."""

from collections import defaultdict
from dataclasses import replace
from datetime import timedelta

import pytest
from botocore.exceptions import ClientError

from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoUsers
from signalbox.aws.live.account_items import credentials_item, grants_item
from signalbox.aws.live.accounts import DynamoAccounts, DynamoUserRights
from signalbox.aws.live.realms import RealmSettings
from signalbox.aws.live.recent import Recent
from signalbox.aws.shared.dynamodb import ItemBusy, items_of_tables
from signalbox.backoff import ATTEMPTS
from signalbox.exchange.model.records import Exchange, LiveSettings, User
from signalbox.live.admin.grants import NO_RIGHTS, Grant, Rights
from signalbox.live.admin.settling import RIGHTS_KEPT_SECONDS
from signalbox.live.session.ports import Accounts, RealmAccess
from signalbox.live.session.state import Account
from signalbox.live.wamp.authentication import Credentials
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role
from tests.fakes.aws import STORES
from tests.fakes.backoff import AT_ONCE
from tests.fakes.exchange import MemoryExchanges, MemoryUsers
from tests.fakes.live import PEPPER, START, MemoryAccounts
from tests.fakes.recent import TwoClocks

REALM, PLAIN = ExchangeName("xs_trial.fifo"), ExchangeName("xs_plain.fifo")
ALICE, BOB, UNKNOWN = UserName("alice"), UserName("bob"), UserName("nobody")
SECRET = Credentials.of("a-secret", salt="salt", with_key=True)
GRANTS = (Grant(Right.READ, TopicPattern.parse("trial.", MatchPolicy.PREFIX)),)
MINUTE = timedelta(minutes=1)


@pytest.fixture(params=STORES)
def accounts(request: pytest.FixtureRequest) -> Accounts:
    """A realm, an exchange that is not live, `alice` with a secret and a grant, and `bob` without."""
    is_memory = request.param == "memory"
    table, live = (None, None) if is_memory else map(request.getfixturevalue, ("exchange_table", "live_table"))
    exchanges = MemoryExchanges() if is_memory else DynamoExchanges(table)
    users = MemoryUsers() if is_memory else DynamoUsers(table)
    exchanges.create(Exchange(REALM, None, START, live=LiveSettings(anonymous=BOB)))
    exchanges.create(Exchange(PLAIN, None, START))
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

    assert account.credentials == Credentials.decoy("bob", pepper=PEPPER)
    assert not account.rights.are_any


def test_an_unknown_user_has_no_account(accounts) -> None:
    assert accounts.access(REALM, UNKNOWN, now=START).account is None
    assert accounts.access(REALM, None, now=START) == RealmAccess(LiveSettings(anonymous=BOB), None)


@pytest.mark.parametrize("exchange", [PLAIN, ExchangeName("xs_nothing.fifo")])
def test_an_exchange_that_is_not_live_is_no_realm(accounts, exchange) -> None:
    assert accounts.access(exchange, BOB, now=START).live is None


def test_an_exchange_that_is_being_deleted_is_no_realm(exchange_table, live_table) -> None:
    exchanges = DynamoExchanges(exchange_table)
    made = Exchange(REALM, None, START, live=LiveSettings())
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


def test_rights_follow_from_role_and_grants_and_an_unknown_user_has_none(exchange_table, live_table) -> None:
    DynamoUsers(exchange_table).put(User(ALICE, Role.SUBSCRIBER, Ownership.STRICT, START, "AIDAALICE"))
    live_table.put_item(Item=grants_item(REALM, ALICE, GRANTS, version=1))
    rights = DynamoUserRights(live_table, exchange_table)

    assert rights.find(REALM, ALICE) == Rights(frozenset(), GRANTS)
    assert rights.find(REALM, UNKNOWN) == NO_RIGHTS


class Forgetful:
    """A client whose table answers for one key a call."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def batch_get_item(self, RequestItems):  # noqa: N803 - boto3's
        self.left -= 1
        (name, wanted), *_ = RequestItems.items()
        first, *rest = wanted["Keys"]
        again = {name: {"Keys": rest}} if rest and self.left >= 0 else {}
        return {"Responses": {name: [first]}, "UnprocessedKeys": again}


def test_unprocessed_keys_are_requested_again() -> None:
    keys = [{"pk": str(number)} for number in range(ATTEMPTS)]

    found = items_of_tables(Forgetful(ATTEMPTS), {"Live": keys, "Exchanges": []}, backoff=AT_ONCE)

    assert found == {"Live": keys, "Exchanges": []}
    with pytest.raises(ItemBusy, match="'Live'"):
        items_of_tables(Forgetful(ATTEMPTS), {"Live": [*keys, {"pk": "more"}]}, backoff=AT_ONCE)


class CountedReads:
    """The client of a table, which notes how often each key is read."""

    def __init__(self, client) -> None:
        self.client = client
        self.keys: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self.client, name)

    def batch_get_item(self, RequestItems):  # noqa: N803 - boto3's
        self.keys += [key["pk"] for wanted in RequestItems.values() for key in wanted["Keys"]]
        return self.client.batch_get_item(RequestItems=RequestItems)


def test_the_record_of_a_realm_is_read_once_a_second_and_that_of_a_user_every_time(
    exchange_table, live_table, monkeypatch
) -> None:
    DynamoExchanges(exchange_table).create(Exchange(REALM, None, START, live=LiveSettings(anonymous=ALICE)))
    DynamoUsers(exchange_table).put(User(ALICE, Role.SUBSCRIBER, Ownership.STRICT, START, "AIDAALICE"))
    reads, clock = CountedReads(live_table.meta.client), TwoClocks()
    monkeypatch.setattr(live_table.meta, "client", reads)
    accounts = DynamoAccounts(live_table, exchange_table, PEPPER, RealmSettings(Recent(clock.now)))

    for pause in (0, RIGHTS_KEPT_SECONDS / 2, RIGHTS_KEPT_SECONDS / 2):
        clock.advance(pause)
        assert accounts.access(REALM, ALICE, now=START).live == LiveSettings(anonymous=ALICE)

    assert reads.keys.count(f"exchange#{REALM}") == 2
    assert reads.keys.count(f"user#{ALICE}") == 3


def test_cached_settings_need_no_read(exchange_table, live_table, monkeypatch) -> None:
    DynamoExchanges(exchange_table).create(Exchange(REALM, None, START, live=LiveSettings()))
    reads, clock = CountedReads(live_table.meta.client), TwoClocks()
    monkeypatch.setattr(live_table.meta, "client", reads)
    accounts = DynamoAccounts(live_table, exchange_table, PEPPER, RealmSettings(Recent(clock.now)))

    found = [accounts.access(REALM, None, now=START).live for _ in range(2)]

    assert (found, len(reads.keys)) == ([LiveSettings()] * 2, 1)


def test_a_missing_realm_is_not_cached(exchange_table, live_table) -> None:
    accounts = DynamoAccounts(live_table, exchange_table, PEPPER, RealmSettings(Recent(TwoClocks().now)))
    assert accounts.access(REALM, None, now=START).live is None

    DynamoExchanges(exchange_table).create(Exchange(REALM, None, START, live=LiveSettings()))

    assert accounts.access(REALM, None, now=START).live == LiveSettings()


def test_the_cache_of_realms_is_bounded(exchange_table, live_table, monkeypatch) -> None:
    monkeypatch.setattr("signalbox.aws.live.recent.MAXIMUM_VALUES", 1)
    realms = RealmSettings(Recent(TwoClocks().now))
    names = [REALM, ExchangeName("xs_other.fifo")]
    for name in names:
        DynamoExchanges(exchange_table).create(Exchange(name, None, START, live=LiveSettings()))
        DynamoAccounts(live_table, exchange_table, PEPPER, realms).access(name, None, now=START)

    assert [realms.known(name) for name in names] == [None, LiveSettings()]


def test_errors_propagate(live_table, exchange_table) -> None:
    live_table.delete()

    with pytest.raises(ClientError):
        DynamoAccounts(live_table, exchange_table, PEPPER).count_failure(ALICE, now=START)
