"""What a denial or removal ends: each way in of a user who has joined, and of one who joins afterwards."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from lambdas.live import wiring
from lambdas.shared import instance
from signalbox.aws.exchange.counters import DynamoRightsVersion
from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoUsers
from signalbox.aws.live.connection_snapshots import DynamoConnectionSnapshots
from signalbox.aws.live.grants import DynamoGrants, DynamoGroups, DynamoSecrets
from signalbox.aws.live.session_notifier import SqsSessionNotifier
from signalbox.aws.live.sessions import DynamoRealmSessions, DynamoSessions
from signalbox.control.envelope import Envelope
from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.admin.command_handlers import LiveCommandHandlers
from signalbox.live.admin.command_reader import COMMANDS
from signalbox.live.admin.commands import secret_fields
from signalbox.live.admin.concerned_sessions import ConcernedSessions, RightsNotices
from signalbox.live.admin.ports import LiveAdminStore
from signalbox.live.model.state import ConnectionId, SessionState
from signalbox.live.outbox.snapshots import SnapshotRequest
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.sarracenia.rights.names import UserName
from tests.fakes.aws import aws, exchange_table, live_table, sqs  # noqa: F401 - fixtures
from tests.fakes.issuer import LoopbackIssuer
from tests.handlers.live.live_stage import INBOX, NAMES, REALM, LiveStage, stage  # noqa: F401 - fixtures
from tests.handlers.live.test_session import issuer  # noqa: F401 - fixture

USER, SECRET, TOPIC, CONNECTION = UserName("source"), "a-secret", "trial.a", ConnectionId("c1")
NEW_SECRET = StoredSecret.of("new", salt="5a17" * 8, with_key=False)
EVERYTHING = frozenset({"publish", "subscribe", "receive", "call", "join"})


class World(NamedTuple):
    """A realm with the user `source`, who may read and write `trial…`, and an issuer whose user `ann@lab` may, too."""

    stage: LiveStage
    issuer: LoopbackIssuer
    snapshots: DynamoConnectionSnapshots

    def command(self, name: str, **fields: object) -> None:
        envelope = Envelope("1", None, {"command": name, "id": "1", **fields})
        LiveCommandHandlers(self.rights, self.notices, lambda _: None).answer(None, envelope.command(COMMANDS))

    def declare(self, **changes: Any) -> None:
        """Change the settings of the realm, as the command `declare_exchange` does."""
        exchanges = DynamoExchanges(self.stage.exchanges)
        stored = exchanges.find(REALM)
        assert exchanges.save(replace(stored, live=replace(stored.live, **changes)), replacing=stored)

    def remove_user(self) -> None:
        DynamoUsers(self.stage.exchanges).remove(USER)
        self.command("forget_user", user=USER)

    def end_refused(self) -> None:
        self.notices.end_refused(REALM)

    @property
    def rights(self) -> LiveAdminStore:
        live, exchanges = self.stage.live, self.stage.exchanges
        stores = (DynamoExchanges(exchanges), DynamoUsers(exchanges))
        return LiveAdminStore(*stores, DynamoGrants(live), DynamoGroups(live), DynamoSecrets(live))

    @property
    def notices(self) -> RightsNotices:
        live = self.stage.live
        return RightsNotices(
            ConcernedSessions(self.rights, DynamoRealmSessions(live), DynamoSessions(live)),
            DynamoRightsVersion(self.stage.exchanges),
            SqsSessionNotifier(self.stage.sqs, self.stage.urls[INBOX]),
            instance.CLOCK,  # the wait of a command is part of what it promises
        )


@pytest.fixture
def world(stage: LiveStage, issuer: LoopbackIssuer) -> World:  # noqa: F811 - fixtures
    found = World(stage, issuer, DynamoConnectionSnapshots(stage.live, stage.exchanges))
    found.declare(anonymous=USER)
    return found


def by_secret(world: World, connection: str) -> list[Any]:
    world.stage.say(connection, 1, REALM, {"authid": USER, "authmethods": ["ticket"], "roles": {}})
    return world.stage.say(connection, 5, SECRET, {})


def by_token(world: World, connection: str) -> list[Any]:
    world.stage.say(connection, 1, REALM, {"authmethods": ["ticket"], "roles": {}})
    return world.stage.say(connection, 5, world.issuer.token(), {})


def without_secret(world: World, connection: str) -> list[Any]:
    return world.stage.say(connection, 1, REALM, {"authmethods": ["anonymous"], "roles": {}})


Join = Callable[[World, str], list[Any]]


def open_ways(world: World, join: Join) -> frozenset[str]:
    """Return the ways in that are open: those of the session that has joined, and a session that joins now."""
    ask = world.stage.say
    ask(CONNECTION, 16, 10, {"acknowledge": True}, TOPIC, ["x"])
    ways = {
        "publish": bool(world.stage.taken(NAMES.queue(REALM))),
        "subscribe": [one[0] for one in ask(CONNECTION, 32, 11, {}, "trial.b")] == [33],
        "receive": _is_posted(world),
        "call": [one[0] for one in ask(CONNECTION, 48, 12, {}, "wamp.subscription.lookup", ["trial.b"])] == [50],
    }
    world.stage.connect("c2")
    ways["join"] = [one[0] for one in join(world, "c2")] == [2]
    world.stage.connect("c2", routeKey="$disconnect")
    world.stage.process()
    return frozenset(name for name, is_open in ways.items() if is_open)


def _is_posted(world: World) -> bool:
    """Return whether the writer of the outbox posts an event to the session, by the rights that it has read."""
    stored = wiring.sessions().find(CONNECTION)
    assert stored is not None
    owner = (REALM, UserName(stored.session.identity.authid))
    snapshot = world.snapshots.recent([SnapshotRequest(CONNECTION, owner, has_only_events=False)])[CONNECTION]
    return stored.session.state is SessionState.JOINED and snapshot.rights.may_receive(RoutingKey(TOPIC))


def rights(**fields: object) -> list[dict[str, object]]:
    """Return the fields of a grant or deny of all rights to the topics `trial…`."""
    every = {"exchange": REALM, "match": "prefix", "uri": "trial"}
    return [{**every, "right": right, **fields} for right in ("read", "write")]


def only_by_group(world: World) -> None:
    for one in rights(user="@lab"):
        world.command("grant", **one)
    for one in rights(user=USER):
        world.command("ungrant", **one)
    world.command("group_add", exchange=REALM, group="lab", users=[USER])


def all_of(command: str, **fields: object) -> Callable[[World], None]:
    def change(world: World) -> None:
        for one in rights(**fields):
            world.command(command, **one)

    return change


def replace_secret(world: World) -> None:
    world.command("secret", user=USER, **secret_fields(NEW_SECRET))


def nothing(world: World) -> None:
    del world


def declared(**changes: Any) -> Callable[[World], None]:
    def change(world: World) -> None:
        world.declare(**changes)
        world.end_refused()

    return change


def with_issuer(**changes: Any) -> Callable[[World], None]:
    """Return the change of settings of the realm's issuer, and the end of the sessions that they do not admit."""

    def change(world: World) -> None:
        (trusted,) = DynamoExchanges(world.stage.exchanges).find(REALM).live.issuers
        world.declare(issuers=(replace(trusted, **changes),))
        world.end_refused()

    return change


CASES = {
    "grant removed": (by_secret, nothing, all_of("ungrant", user=USER), {"call"}),
    "deny granted": (by_secret, nothing, all_of("grant", user=USER, deny=True), {"call"}),
    "deny granted to all": (by_token, nothing, all_of("grant", user="@everyone", deny=True), {"call"}),
    "user removed from a group": (
        by_secret,
        only_by_group,
        lambda world: world.command("group_remove", exchange=REALM, group="lab", users=[USER]),
        {"call"},
    ),
    "grant of a group removed": (by_secret, only_by_group, all_of("ungrant", user="@lab"), {"call"}),
    "user removed": (by_secret, nothing, World.remove_user, set()),
    "user of anonymous sessions removed": (without_secret, nothing, World.remove_user, set()),
    "secret replaced": (by_secret, nothing, replace_secret, set()),
    "issuer removed": (by_token, nothing, declared(issuers=()), set()),
    "audience of the issuer replaced": (by_token, nothing, with_issuer(audience="other"), set()),
    "claim of names replaced": (by_token, nothing, with_issuer(name_claim="email"), set()),
    "anonymous sessions refused": (without_secret, nothing, declared(anonymous=None), set()),
}
"""For each removal: how the user joins, the state before, the change, and the ways that stay open."""


@pytest.mark.parametrize("name", CASES)
def test_a_removal_ends_every_way_in(world: World, name: str) -> None:
    join, prepare, change, left = CASES[name]
    prepare(world)
    world.stage.connect(CONNECTION)
    join(world, CONNECTION)
    assert open_ways(world, join) == EVERYTHING

    change(world)
    world.stage.process()

    assert open_ways(world, join) == left


REFUSALS = {
    "issuer removed": (by_token, lambda world: world.declare(issuers=())),
    "anonymous sessions refused": (without_secret, lambda world: world.declare(anonymous=None)),
    "secret replaced": (by_secret, lambda world: world.rights.secrets.put({USER: NEW_SECRET})),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_no_way_is_open_to_a_session_that_its_realm_does_not_admit_and_no_signal_reaches(
    world: World, name: str
) -> None:
    join, change = REFUSALS[name]
    world.stage.connect(CONNECTION)
    join(world, CONNECTION)
    assert open_ways(world, join) == EVERYTHING

    change(world)
    world.notices.settle()

    assert open_ways(world, join) == set()


@pytest.mark.parametrize("changes", [{"retention": LiveSettings().retention}, {"anonymous": None}])
def test_sessions_that_the_settings_admit_continue(world: World, changes: dict[str, Any]) -> None:
    world.stage.connect(CONNECTION)
    by_secret(world, CONNECTION)

    declared(**changes)(world)
    world.stage.process()

    assert open_ways(world, by_secret) == EVERYTHING
