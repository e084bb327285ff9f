"""The functions of live answer a login without the right secret alike for every name, by the same calls."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.aws.live import recent
from signalbox.aws.live.account_items import credentials_item, group_grants_item
from signalbox.aws.live.items import group_grants_version_key
from signalbox.exchange.model.records import User
from signalbox.live.model import state
from signalbox.live.rights.grants import Grant, GrantSet
from signalbox.live.rights.principals import EVERYONE
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role
from tests.fakes.aws import aws, exchange_table, live_table, sqs  # noqa: F401 - fixtures
from tests.handlers.billed_calls import billed_units, recorded_calls
from tests.handlers.live.live_stage import REALM, LiveStage, forget_everything, stage  # noqa: F401 - fixtures
from tests.handlers.live.test_arvados import realm  # noqa: F401 - fixture

UNKNOWN = "stranger"
USERS: dict[str, tuple[Role, str | None, bool | None]] = {
    "keyed": (Role.ADMIN, "AIDAKEYED", True),
    "ticketed": (Role.SUBSCRIBER, "AIDATICKETED", False),
    "live-only": (Role.FEEDER, None, True),
    "without-secret": (Role.SOURCE, "AIDAWITHOUT", None),
}
"""Of each user the role, the IAM identity, and whether the secret is for wampcra."""
EVERYTHING = TopicPattern(MatchPolicy.PREFIX, "")
OFFERED = [["ticket"], ["wampcra"], ["wampcra", "ticket"], ["scram"]]


@pytest.fixture
def users(realm: LiveStage, monkeypatch: pytest.MonkeyPatch) -> LiveStage:  # noqa: F811 - fixture
    """A realm with a user of each kind, in which all users may read and none may write."""
    # A slow machine must neither read rights again for the second message nor exceed the time to join.
    monkeypatch.setattr(recent, "RIGHTS_KEPT_SECONDS", 3600)
    monkeypatch.setattr(state, "JOIN_TIMEOUT", timedelta(hours=1))
    now = datetime.now(UTC)
    for name, (role, iam_id, with_key) in USERS.items():
        DynamoUsers(realm.exchanges).put(User(UserName(name), role, Ownership.STRICT, now, iam_id))
        if with_key is not None:
            credentials = StoredSecret.of("a-secret", salt="5a17" * 8, with_key=with_key)
            realm.live.put_item(Item=credentials_item(UserName(name), credentials))
    granted = GrantSet((Grant(Right.READ, EVERYTHING),), (Grant(Right.WRITE, EVERYTHING),))
    realm.live.put_item(Item=group_grants_item(REALM, EVERYONE, granted, version=1))
    realm.live.put_item(Item=group_grants_version_key(REALM) | {"version": 1})
    login(realm, "first", ["ticket"], REALM)  # the first login of a stage makes the secret for unknown users
    return realm


@pytest.mark.parametrize("exchange", [REALM, "xs_other.fifo"])
@pytest.mark.parametrize("methods", OFFERED, ids=",".join)
def test_names_are_answered_like_an_unknown_one(users: LiveStage, methods: list[str], exchange: str) -> None:
    answers = {name: login(users, name, methods, exchange) for name in USERS}

    assert answers == dict.fromkeys(USERS, login(users, UNKNOWN, methods, exchange))


def test_tokens_with_wrong_secrets_are_answered_like_one_of_an_unknown_user(users: LiveStage) -> None:
    answers = {name: connection(users, name) for name in USERS}

    assert answers == dict.fromkeys(USERS, connection(users, UNKNOWN))


def login(stage: LiveStage, name: str, methods: Sequence[str], exchange: str) -> object:  # noqa: F811 - a type
    """Try to log in, on cold functions; return the answers without what is random, and the calls with their sizes."""
    forget_everything()
    stage.connect(f"c-{name}")
    with recorded_calls() as calls, billed_units() as units:
        first = stage.say(f"c-{name}", 1, exchange, {"authid": name, "authmethods": list(methods)})
        second = stage.say(f"c-{name}", 5, "wrong", {})
    return [shape(one, name) for one in first + second], calls, units


def connection(stage: LiveStage, name: str) -> object:  # noqa: F811 - a type
    """Try to connect as a client of Arvados, on cold functions; return the answer, and the calls with their sizes."""
    forget_everything()
    with recorded_calls() as calls, billed_units() as units:
        answer = stage.connect(f"c-{name}", {}, token=f"v2/{name}/wrong")
    return answer, calls, units


def shape(answer: Any, name: str) -> object:
    """Return an answer with placeholders for the user's name and for what is random."""
    if answer[:2] != [4, "wampcra"]:
        return answer
    extra = answer[2]
    challenge = json.loads(extra["challenge"])
    assert challenge["authid"] == name
    assert re.fullmatch("[0-9a-f]{32}", extra["salt"])
    return (
        {**extra, "salt": "", "challenge": ""},
        {**challenge, "authid": ""} | dict.fromkeys(("nonce", "timestamp", "session")),
        len(answer),
    )
