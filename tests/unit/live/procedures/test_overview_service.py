"""The service behind the function `overview`: replies in outboxes, twice the same, and unreadable messages."""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.activity.recent import RecentActivity
from signalbox.errors import EffectFailed
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.identity.tokens import TokenIdentity
from signalbox.live.log.read_limits import CREDIT, POST, SMALL, InstanceReads
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.items import ItemId, Reply
from signalbox.live.outbox.overview_calls import InvalidOverviewCall, OverviewCall
from signalbox.live.procedures.overview import OverviewPart, Picture, PictureName, StageOverview, Topic
from signalbox.live.procedures.overview_service import OverviewService
from signalbox.live.rights.grants import NO_RIGHTS, Grant, Rights
from signalbox.live.wamp.messages import Payload, RequestId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right, Role
from tests.fakes.live import REALM, START, MemoryOutboxes

ALICE = UserName("alice")
PRIVATE, OTHER = ExchangeName("private.fifo"), ExchangeName("xpublic")
READER = Rights(frozenset({Right.READ}), ())
ADMIN = Rights(frozenset(Right), (), is_admin=True)
RIGHTS = Rights(frozenset(), (Grant(Right.READ, TopicPattern(MatchPolicy.PREFIX, "trial")),))
CALL = OverviewCall(
    connection=ConnectionId("c1"),
    item_id=ItemId("frame:0"),
    realm=REALM,
    user=ALICE,
    at=START,
    request=RequestId(7),
    procedure="signalbox.topics",
    payload=Payload(),
)


@dataclass
class World:
    """Sources that `fail`, if they do, and the rights of users."""

    rights: dict[tuple[ExchangeName, UserName], Rights] = field(default_factory=lambda: {(REALM, ALICE): RIGHTS})
    everything: tuple[ExchangeName, ...] = (REALM, PRIVATE, OTHER)
    cost: int = 1
    outboxes: MemoryOutboxes = field(default_factory=MemoryOutboxes)
    reads: InstanceReads = field(default_factory=lambda: InstanceReads(lambda: 0.0, nullcontext()))
    fails: bool = False
    activity: RecentActivity = field(default_factory=lambda: RecentActivity(lambda _: [], timedelta(0)))

    def service(self) -> OverviewService:
        stage = StageOverview(
            self,
            {"exchanges": OverviewPart(lambda _now, may_read: list(filter(may_read, self.everything)))},
            self,
            self.activity,
        )
        return OverviewService(stage, self, self.outboxes, self.reads)

    def find(self, *of: object, token: object = None, is_anonymous: bool = False) -> object:
        return "<svg/>" if of == (PictureName("a.svg"),) else self.rights.get(of, NO_RIGHTS)

    def behind(self, realm: ExchangeName, prefix: str, after: str) -> Iterator[tuple[Topic, int]]:
        return iter([(Topic(RoutingKey("secret")), self.cost), (Topic(RoutingKey("trial.a")), self.cost)])

    def every(self) -> list[Picture]:
        if self.fails:
            raise EffectFailed("AWS answered Throttling")
        return [Picture(PictureName("a.svg"), datetime(2026, 11, 21, tzinfo=UTC))]


def replies(world: World) -> list[object]:
    return [json.loads(item.message) for item in world.outboxes.items[CALL.connection] if isinstance(item, Reply)]


@pytest.mark.parametrize(
    ("rights", "call", "reply"),
    [
        (RIGHTS, CALL, [50, 7, {}, [[{"topic": "trial.a", "retained_at": None}]], {"more": False}]),
        (NO_RIGHTS, CALL, [50, 7, {}, [[]], {"more": False}]),
        (ADMIN, replace(CALL, procedure="signalbox.report", payload=Payload(("a.svg",))), [50, 7, {}, ["<svg/>"]]),
        (
            ADMIN,
            replace(CALL, procedure="signalbox.report"),
            [50, 7, {}, [[{"name": "a.svg", "made_at": "2026-11-21T00:00:00.000Z"}]]],
        ),
        (
            ADMIN,
            replace(CALL, procedure="signalbox.overview"),
            [
                *(50, 7, {}),
                [{"at": "2026-11-21T20:00:00.000Z", "exchanges": [REALM, PRIVATE, OTHER]}],
                {"parts": ["exchanges"], "unavailable": {}},
            ],
        ),
        (
            RIGHTS,
            replace(CALL, payload=Payload((), {"prefix": 7})),
            [8, 48, 7, {}, "wamp.error.invalid_argument", ["prefix: expected a text, not 7"]],
        ),
    ],
)
def test_a_call_is_answered_into_the_outbox_of_its_caller(rights, call, reply):
    world = World({(REALM, ALICE): rights})

    world.service().answer(call.body())

    assert replies(world) == [reply]


@pytest.mark.parametrize(
    ("token", "exchanges"), [(None, [REALM, OTHER]), (TokenIdentity("acme", Role.SUBSCRIBER, (), START), [REALM])]
)
def test_the_overview_has_the_exchanges_that_the_role_of_the_caller_reads(token, exchanges):
    granted = Rights(frozenset(), (Grant(Right.READ, TopicPattern(MatchPolicy.PREFIX, "")),))
    world = World({(REALM, ALICE): READER, (PRIVATE, ALICE): granted, (OTHER, ALICE): READER})

    world.service().answer(replace(CALL, procedure="signalbox.overview", token=token).body())

    assert [reply[3][0]["exchanges"] for reply in replies(world)] == [exchanges]


def test_the_rights_that_are_read_for_a_caller_are_limited():
    world = World({(REALM, ALICE): READER}, everything=(OTHER,) * (CREDIT // POST + 1))
    service = world.service()

    for number in range(2):
        service.answer(replace(CALL, procedure="signalbox.overview", item_id=ItemId(f"frame:{number}")).body())
    service.answer(
        replace(CALL, procedure="signalbox.overview", user=UserName("bob"), item_id=ItemId("frame:2")).body()
    )

    assert [reply[4] for reply in replies(world) if reply[0] == 8] == [
        "wamp.error.unavailable",
        "wamp.error.not_authorized",
    ]


def test_what_is_read_of_the_topics_is_limited():
    world = World(cost=SMALL // 2)

    for number in range(5):
        world.service().answer(replace(CALL, item_id=ItemId(f"frame:{number}")).body())

    assert [reply[0] for reply in replies(world)] == [50, 50, 50, 50, 8]


def test_no_rights_are_read_after_the_time_of_the_function():
    world = World({(REALM, ALICE): READER})
    service = replace(world.service(), is_late=lambda: True)

    service.answer(replace(CALL, procedure="signalbox.overview").body())

    assert "exchanges" in replies(world)[0][4]["unavailable"]


@pytest.mark.parametrize("procedure", ["signalbox.report", "signalbox.overview"])
def test_a_caller_that_has_lost_its_right_gets_no_result(procedure):
    world = World()

    world.service().answer(replace(CALL, procedure=procedure).body())

    assert replies(world)[0][4] == "wamp.error.not_authorized"


def test_a_call_that_is_answered_twice_has_one_reply():
    world = World()

    for _ in range(2):
        world.service().answer(CALL.body())

    assert len(replies(world)) == 1


def test_a_source_that_does_not_answer_is_an_error_and_not_a_retry():
    world = World({(REALM, ALICE): ADMIN}, fails=True)

    world.service().answer(replace(CALL, procedure="signalbox.report").body())

    assert replies(world) == [[8, 48, 7, {}, "wamp.error.unavailable", ["AWS answered Throttling"]]]


@pytest.mark.parametrize("payload", [Payload((1, "ä\x00\ud800"), {"prefix": "t"}), Payload()])
def test_a_call_survives_its_message(payload):
    call = replace(CALL, payload=payload)

    assert OverviewCall.parse(call.body()) == call


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("nonsense", "a message of 8 characters is not a call: JSONDecodeError"),
        ("[]", "a message of 2 characters is not a call: TypeError"),
        ("{}", "a message of 2 characters is not a call: KeyError"),
        (
            replace(CALL, procedure="wamp.session.kill").body(),
            "procedure: expected one of signalbox.topics, .*, not 'w",
        ),
    ],
)
def test_an_unreadable_message_is_refused(body, reason):
    with pytest.raises(InvalidOverviewCall, match=reason):
        World().service().answer(body)
