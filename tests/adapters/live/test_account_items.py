"""The items of grants and secrets: reading is the inverse of writing."""

import pytest

from signalbox.aws.live.account_items import CREDENTIALS, credentials_item, grants_item, grants_of
from signalbox.live.rights.grants import Grant
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right

REALM, ALICE = ExchangeName("xtrial.fifo"), UserName("alice")
GRANTS = (
    Grant(Right.READ, TopicPattern(MatchPolicy.PREFIX, "trial")),
    Grant(Right.WRITE, TopicPattern(MatchPolicy.WILDCARD, "trial..log")),
)


def test_grants_are_read_as_they_were_written():
    item = grants_item(REALM, ALICE, GRANTS, version=3)

    assert (item["pk"], item["sk"], item["version"]) == ("grants#xtrial.fifo#alice", "grants", 3)
    assert grants_of(item) == GRANTS


def test_a_user_without_an_item_has_no_grants():
    assert grants_of(None) == ()


@pytest.mark.parametrize("with_key", [True, False])
def test_credentials_are_read_as_they_were_written(with_key):
    credentials = StoredSecret.of("of-alice", salt="5a17", with_key=with_key)

    item = credentials_item(ALICE, credentials)

    assert ("key" in item) is with_key
    assert "of-alice" not in item.values()
    assert CREDENTIALS.read(item) == credentials
