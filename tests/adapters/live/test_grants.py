"""Grants and secrets in DynamoDB: writes are found, and concurrent changes are not overwritten."""

import pytest

from signalbox.aws.live.account_items import credentials_of
from signalbox.aws.live.grants import DynamoGrants, DynamoSecrets
from signalbox.aws.live.items import secret_key
from signalbox.live.admin.grants import Grant
from signalbox.live.admin.ports import StoredGrants
from signalbox.live.wamp.authentication import Credentials
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.permissions import Right
from tests.fakes.aws import live_table  # noqa: F401 - a fixture

REALM, BOB = "xtrial.fifo", "bob"
LOGS, STATES = (Grant(Right.READ, TopicPattern(MatchPolicy.PREFIX, uri)) for uri in ("logs.", "states."))


@pytest.fixture
def grants(live_table):  # noqa: F811
    return DynamoGrants(live_table)


def test_before_anything_is_granted_there_is_nothing(grants):
    assert grants.find(REALM, BOB) == StoredGrants()


def test_what_is_stored_is_found_under_the_next_version(grants):
    assert grants.save(REALM, BOB, [LOGS], replacing=StoredGrants())
    kept = grants.find(REALM, BOB)
    assert kept == StoredGrants((LOGS,), 1)

    assert grants.save(REALM, BOB, [LOGS, STATES], replacing=kept)
    assert grants.find(REALM, BOB) == StoredGrants((LOGS, STATES), 2)


def test_what_somebody_else_changed_is_not_overwritten(grants):
    grants.save(REALM, BOB, [LOGS], replacing=StoredGrants())

    assert not grants.save(REALM, BOB, [STATES], replacing=StoredGrants())
    assert not grants.save(REALM, BOB, [STATES], replacing=StoredGrants((LOGS,), 2))
    assert grants.find(REALM, BOB).grants == (LOGS,)


def test_a_secret_takes_the_place_of_the_one_before_until_it_is_forgotten(live_table):  # noqa: F811
    secrets, table = DynamoSecrets(live_table), live_table
    first, second = (Credentials.of(secret, salt="5a17", with_key=True) for secret in ("one", "two"))

    secrets.put({BOB: first})
    secrets.put({BOB: second})
    assert credentials_of(table.get_item(Key=secret_key(BOB))["Item"]) == second

    secrets.remove(BOB)
    secrets.remove(BOB)
    assert "Item" not in table.get_item(Key=secret_key(BOB))
