"""How users stand in realms: in memory, and read of two tables at once."""

from collections import defaultdict
from dataclasses import replace
from datetime import timedelta

import pytest
from botocore.exceptions import ClientError

from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoUsers
from signalbox.aws.live.account_items import credentials_item, grants_item
from signalbox.aws.live.accounts import DynamoAccounts
from signalbox.aws.shared.dynamodb import TRIES, ItemBusy, items_of_tables
from signalbox.exchange.model.records import Exchange, LiveSettings, User
from signalbox.live.admin.grants import Grant, Rights
from signalbox.live.session.ports import Accounts, Standing
from signalbox.live.session.state import Account
from signalbox.live.wamp.authentication import Credentials
from signalbox.live.wamp.patterns import Match, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role
from tests.fakes.exchange import MemoryExchanges, MemoryUsers
from tests.fakes.live import PEPPER, START, MemoryAccounts

REALM, PLAIN = ExchangeName("xs_trial.fifo"), ExchangeName("xs_plain.fifo")
ALICE, BOB, NOBODY = UserName("alice"), UserName("bob"), UserName("nobody")
SECRET = Credentials.of("a-secret", salt="salt", with_key=True)
GRANTS = (Grant(Right.READ, TopicPattern.parse("trial.", Match.PREFIX)),)
MINUTE = timedelta(minutes=1)


@pytest.fixture(params=["memory", "dynamodb"])
def accounts(request: pytest.FixtureRequest) -> Accounts:
    """A realm, an exchange that is none, `alice` who has a secret and a grant, and `bob` who has neither."""
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


def test_a_user_stands_in_a_realm_with_secret_role_and_grants(accounts) -> None:
    standing = accounts.standing(REALM, ALICE, now=START)

    rights = Rights.in_realm(REALM, user=ALICE, role=Role.SUBSCRIBER, ownership=Ownership.STRICT, grants=GRANTS)
    assert standing == Standing(LiveSettings(anonymous=BOB), Account(ALICE, Role.SUBSCRIBER, SECRET, rights))


def test_who_has_no_secret_has_one_that_nobody_knows(accounts) -> None:
    account = accounts.standing(REALM, BOB, now=START).account

    assert account.credentials == Credentials.pretended("bob", pepper=PEPPER)
    assert not account.rights.are_any


def test_who_is_not_there_has_no_account(accounts) -> None:
    assert accounts.standing(REALM, NOBODY, now=START).account is None
    assert accounts.standing(REALM, None, now=START) == Standing(LiveSettings(anonymous=BOB), None)


@pytest.mark.parametrize("exchange", [PLAIN, ExchangeName("xs_nothing.fifo")])
def test_an_exchange_that_is_not_live_is_no_realm(accounts, exchange) -> None:
    assert accounts.standing(exchange, BOB, now=START).live is None


def test_an_exchange_that_is_leaving_is_no_realm(exchange_table, live_table) -> None:
    exchanges = DynamoExchanges(exchange_table)
    made = Exchange(REALM, None, START, live=LiveSettings())
    exchanges.create(made)
    exchanges.save(replace(made, is_deleting=True), replacing=made)

    assert DynamoAccounts(live_table, exchange_table, PEPPER).standing(REALM, None, now=START).live is None


@pytest.mark.parametrize("user", [ALICE, NOBODY])
def test_wrong_secrets_are_counted_also_of_nobody(accounts, user) -> None:
    for _ in range(3):
        accounts.note_failure(user, now=START)

    assert accounts.standing(REALM, user, now=START).failures == 3


def test_wrong_secrets_are_forgotten(exchange_table, live_table) -> None:
    accounts = DynamoAccounts(live_table, exchange_table, PEPPER)
    for moment in (START, START, START + MINUTE):
        accounts.note_failure(ALICE, now=moment)

    assert accounts.standing(REALM, ALICE, now=START + MINUTE).failures == 1
    assert accounts.standing(REALM, ALICE, now=START + 2 * MINUTE).failures == 0


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


def test_keys_that_were_not_answered_for_are_asked_for_again() -> None:
    keys = [{"pk": str(number)} for number in range(TRIES)]

    assert items_of_tables(Forgetful(TRIES), {"Live": keys, "Exchanges": []}) == {"Live": keys, "Exchanges": []}
    with pytest.raises(ItemBusy, match="'Live'"):
        items_of_tables(Forgetful(TRIES), {"Live": [*keys, {"pk": "more"}]})


def test_errors_are_let_through(live_table, exchange_table) -> None:
    live_table.delete()

    with pytest.raises(ClientError):
        DynamoAccounts(live_table, exchange_table, PEPPER).note_failure(ALICE, now=START)
