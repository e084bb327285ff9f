"""Rights by groups in sessions: of the stage, of tokens, of everyone, and their end."""

from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.exchange.model.issuers import Issuer
from signalbox.exchange.model.records import LiveSettings
from signalbox.live.identity.tokens import TokenIdentity, VerifiedToken
from signalbox.live.identity.trust import trust_of
from signalbox.live.model.state import RightsChanged
from signalbox.live.outbox.overview_calls import OverviewCall
from signalbox.live.rights.grants import Grant, GrantSet, GroupGrants
from signalbox.live.rights.principals import EVERYONE, GroupName
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.permissions import Right, Role
from tests.fakes.live import REALM, START, MemoryLive
from tests.unit.live.session.conversation import ROLES, Client

ISSUER = Issuer("https://id.example.org", "signalbox")
ENDS_AT = START + timedelta(hours=1)
IDENTITY = TokenIdentity(ISSUER.url, Role.SUBSCRIBER, ("lab",), ENDS_AT, trust=trust_of(ISSUER, [ISSUER]))
NOT_AUTHORIZED = "wamp.error.not_authorized"


@pytest.fixture
def world() -> MemoryLive:
    world = MemoryLive()
    world.add_user("bob", Role.SUBSCRIBER)
    world.declare(LiveSettings(issuers=(ISSUER,), anonymous="bob"))
    for token, groups in (("eyJ.ann.1", ("lab",)), ("eyJ.ann.2", ("other",))):
        identity = replace(IDENTITY, groups=groups)
        world.tokens.results[token] = VerifiedToken("ann@x.org", "id", identity, START)
    by_group = Grant(Right.READ, TopicPattern.parse("container.{group}.", MatchPolicy.PREFIX))
    world.accounts.group_grants[REALM] = GroupGrants(1, {EVERYONE: GrantSet((by_group,))})
    return world


def subscribed(client: Client, request: int, topic: str) -> bool:
    reply = client.say(32, request, {"match": "prefix"}, topic)[0]
    assert reply[0] == 33 or reply[4] == NOT_AUTHORIZED
    return reply[0] == 33


def ended(replies: list[object]) -> bool:
    return any(reply[0] == 35 and reply[2]["reason"] == NOT_AUTHORIZED for reply in replies if isinstance(reply, list))


def test_a_group_of_the_stage_permits_its_topics_until_it_ends(world) -> None:
    world.accounts.groups[REALM, "bob"].add(GroupName("lab"))
    client = Client(world).open().join("bob")

    assert subscribed(client, 1, "container.lab.")
    assert not subscribed(client, 2, "container.other.")
    world.accounts.groups[REALM, "bob"].clear()
    assert ended(client.notify(RightsChanged()))
    assert not subscribed(client, 3, "container.lab.")


def test_a_deny_ends_a_subscription_that_it_covers_and_no_other(world) -> None:
    world.accounts.groups[REALM, "bob"] |= {GroupName("lab"), GroupName("other")}
    client = Client(world).open().join("bob")
    assert subscribed(client, 1, "container.lab.")
    assert subscribed(client, 2, "container.other.")

    denied = Grant(Right.READ, TopicPattern.parse("container.lab.", MatchPolicy.PREFIX))
    world.accounts.denies[REALM, "bob"].append(denied)
    assert ended(client.notify(RightsChanged()))

    left = world.sessions.records["c1"].session.subscriptions.values()
    assert [pattern.uri for pattern in left] == ["container.other."]


def test_an_anonymous_session_is_not_of_everyone(world) -> None:
    open_to_all = Grant(Right.READ, TopicPattern.parse("open.", MatchPolicy.PREFIX))
    world.accounts.grants[REALM, "bob"].append(open_to_all)
    everyone = Grant(Right.READ, TopicPattern.parse("staff.", MatchPolicy.PREFIX))
    world.accounts.group_grants[REALM] = GroupGrants(2, {EVERYONE: GrantSet((everyone,))})
    anonymous, bob = Client(world).open(), Client(world, "c2").open().join("bob")
    assert anonymous.say(1, REALM, {"roles": ROLES})[0][0] == 2

    assert [subscribed(one, 1, "open.") for one in (anonymous, bob)] == [True, True]
    assert [subscribed(one, 2, "staff.") for one in (anonymous, bob)] == [False, True]
    for one in (anonymous, bob):
        one.say(32, 4, {"match": "prefix"}, "open.")
        one.say(48, 3, {}, "signalbox.topics")
    assert world.subscribers.asked[-2:] == [("bob", True), ("bob", False)]
    calls = world.overview_calls.calls.values()
    assert [call.is_anonymous for call in calls] == [True, False]
    assert [OverviewCall.parse(call.body()) for call in calls] == list(calls)
