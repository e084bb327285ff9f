"""The handlers of commands about grants and secrets: permissions, results and notified sessions."""

import json
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from signalbox.control.delivery import ONCE, CommandDelivery, Overtaken
from signalbox.control.envelope import Envelope, InvalidCommand
from signalbox.errors import EffectFailed
from signalbox.exchange.control.errors import NotFound, NotPermitted
from signalbox.exchange.model.issuers import Issuer
from signalbox.exchange.model.records import ExchangeRecord, LiveSettings, User
from signalbox.history.event import HistoryEvent
from signalbox.live.admin import dry_run, rights_changes
from signalbox.live.admin.command_handlers import LiveCommandHandlers
from signalbox.live.admin.command_reader import COMMANDS
from signalbox.live.admin.commands import secret_fields
from signalbox.live.admin.concerned_sessions import ConcernedSessions, RightsNotices
from signalbox.live.admin.ports import LiveAdminStore
from signalbox.live.admin.rights_changes import MAXIMUM_GRANTS, GrantsChanged, RightsChanges, TooManyGrants
from signalbox.live.admin.rights_sources import RightsSourcesReader
from signalbox.live.identity.tokens import TokenIdentity
from signalbox.live.model.state import SessionState, opened
from signalbox.live.ports import Member
from signalbox.live.rights.grants import Grant, GroupGrants
from signalbox.live.rights.settling import RIGHTS_SETTLE_SECONDS
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.authentication import AuthMethod, Identity, StoredSecret
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role
from tests.fakes.clock import MemoryTime
from tests.fakes.exchange import MemoryExchanges, MemoryUsers
from tests.fakes.grants import MemoryGrants, MemoryGroups
from tests.fakes.live import START, MemoryInbox, MemoryRealmSessions, MemorySessions

OWN, OTHER, PLAIN = "xs_alice.fifo", "xs_carol.fifo", "xs_alice_plain.fifo"
LOGS = {"user": "bob", "exchange": OWN, "match": "prefix", "uri": "logs."}
CREDENTIALS = StoredSecret.of("of-bob", salt="5a17" * 8, with_key=True)
NEWER = StoredSecret.of("newer", salt="5a17" * 8, with_key=True)
EXPECTED = "expected letters, digits and - . _ @ :, and other characters percent-encoded"
ISSUER = Issuer("https://id.example", "signalbox")


class MemorySecrets(dict):
    def changed_at(self, user):
        return self.sent.get(user)

    def put(self, secrets, *, sent_at=None):
        self.update(secrets)
        self.sent |= dict.fromkeys(secrets, sent_at)

    def __init__(self):
        super().__init__()
        self.tokens_ended, self.sent = {}, {}

    def remove(self, user, realms, *, now):
        self.pop(user, None)
        self.tokens_ended |= {(realm, user): now for realm in realms}


@dataclass
class MemoryRightsVersion:
    """`RightsVersion` with the time of each change, and the stored rights at that time."""

    stage: "Stage"
    increments: list[tuple[datetime, object]] = field(default_factory=list)

    def increment(self):
        self.increments.append((self.stage.clock.now(), self.stage.stored))


class DatedNotifier(MemoryInbox):
    """`SessionNotifier` that knows when it was used."""

    def __init__(self, clock):
        super().__init__()
        self.clock, self.notified_at = clock, []

    def notify_all(self, connections, signal, *, request):
        for connection in connections:
            self.notify(connection, signal, request=f"{connection} {request}")
        self.notified_at.append(self.clock.now())


class Stage:
    def __init__(self):
        self.clock = MemoryTime()
        self.groups, self.sessions = MemoryGroups(self.clock), MemorySessions()
        self.grants = MemoryGrants(self.clock, groups=self.groups)
        self.exchanges, self.secrets = MemoryExchanges(), MemorySecrets()
        self.rights_version = MemoryRightsVersion(self)
        self.users, self.realm_sessions, self.inbox = MemoryUsers(), MemoryRealmSessions(), DatedNotifier(self.clock)
        self.events: list[HistoryEvent] = []
        for name, live in ((OWN, LiveSettings()), (OTHER, LiveSettings(issuers=(ISSUER,))), (PLAIN, None)):
            self.exchanges.create(ExchangeRecord(name, None, START, live=live))
        for name, role in (("alice", Role.SOURCE), ("bob", Role.SUBSCRIBER), ("root", Role.ADMIN)):
            self.users.put(User(name, role, Ownership.STRICT, START, f"AIDA{name}"))
        self.store = LiveAdminStore(self.exchanges, self.users, self.grants, self.groups, self.secrets)
        concerned = ConcernedSessions(self.store, self.realm_sessions, self.sessions)
        self.notices = RightsNotices(concerned, self.rights_version, self.inbox, self.clock)

    def ask(self, command, *, by=None, delivery=ONCE, **given):
        found = Envelope("1", None, {"command": command, "id": "1", **given}).command(COMMANDS)
        handlers = LiveCommandHandlers(self.store, self.notices, self.events.extend)
        return handlers.answer(by, found, delivery=delivery)

    def join(self, user, connection, *, realm=OWN, session=1, groups=None, method=AuthMethod.TICKET, subscribed=()):
        """Let a session join; `groups` are those of its token, `subscribed` has prefixes of topics."""
        member = Member(connection, Listener(session, user, "subscriber"), START)
        self.realm_sessions.enter(realm, member, expires_at=START)
        token = None if groups is None else TokenIdentity("", Role.SUBSCRIBER, tuple(groups), START)
        patterns = [TopicPattern.parse(uri, MatchPolicy.PREFIX) for uri in subscribed]
        joined = replace(
            opened(connection, now=START),
            state=SessionState.JOINED,
            realm=realm,
            session=session,
            identity=Identity(user, "subscriber", method),
            token=token,
            subscriptions={pattern.subscription_id: pattern for pattern in patterns},
        )
        self.sessions.open(joined)

    @property
    def notified(self):
        return sorted(self.inbox.bodies)

    @property
    def stored(self):
        """Return the stored grants, groups and secrets."""
        return dict(self.grants.kept), set(self.groups.kept), dict(self.secrets)


@pytest.fixture
def stage():
    return Stage()


def problems(stage, command, **given):
    with pytest.raises(InvalidCommand) as caught:
        stage.ask(command, **given)
    return str(caught.value).splitlines()


def secret(credentials=CREDENTIALS, **given):
    return {**secret_fields(credentials), **given}


def test_a_grant_is_stored_once(stage):
    grant = {**LOGS, "right": "read"}

    assert stage.ask("grant", **LOGS) == {**grant, "granted": True}
    assert stage.ask("grant", **LOGS) == {**grant, "granted": False}
    assert stage.ask("grants") == [grant]
    assert stage.grants.find(OWN, "bob").grants == (Grant(Right.READ, TopicPattern(MatchPolicy.PREFIX, "logs.")),)
    (event,) = stage.events
    assert (event.kind, event.topic, event.source, event.destination) == ("granted", "logs.", OWN, "bob")


def test_a_grant_defaults_to_reading_one_topic(stage):
    assert stage.ask("grant", user="bob", exchange=OWN, uri="a.b")["match"] == "exact"
    assert stage.ask("grant", user="bob", exchange=OWN, uri="a.b", right="write")["right"] == "write"
    assert len(stage.ask("grants")) == 2


LAB = {"exchange": OWN, "group": "lab", "users": ["bob"]}
DENY = {**LOGS, "deny": True}


@pytest.mark.parametrize(
    ("command", "given"),
    [
        ("ungrant", LOGS),
        ("ungrant", {**LOGS, "user": "@lab"}),
        ("grant", DENY),
        ("group_remove", LAB),
    ],
)
def test_a_revocation_raises_the_version_after_its_write_and_settles_before_sessions_are_notified(
    stage, command, given
):
    stage.ask("grant", **LOGS)
    stage.ask("grant", **{**LOGS, "user": "@lab"})
    stage.ask("group_add", **LAB)
    stage.join("bob", "c1")
    stage.join("alice", "c2", session=2)
    stage.rights_version.increments.clear()
    before = stage.stored

    stage.ask(command, **given)

    assert dict(stage.inbox.bodies) == {"c1": ['{"heard": "rights"}']}
    ((changed_at, stored),) = stage.rights_version.increments
    assert stored == stage.stored != before
    assert (stage.inbox.notified_at[-1] - changed_at).total_seconds() == RIGHTS_SETTLE_SECONDS

    stage.ask(command, **given)  # received twice: the function may have been killed before it raised the version
    assert len(stage.rights_version.increments) == 2


@pytest.mark.parametrize(
    ("command", "given"),
    [("grant", LOGS), ("grant", {**LOGS, "user": "@lab"}), ("ungrant", {**DENY, "uri": "old."}), ("group_add", LAB)],
)
def test_what_gives_rights_raises_the_version_after_its_write_and_does_not_wait(stage, command, given):
    stage.ask("grant", **{**DENY, "uri": "old."})
    stage.rights_version.increments.clear()
    before, began = stage.stored, stage.clock.now()

    stage.ask(command, **given)

    assert stage.rights_version.increments == [(began, stage.stored)]
    assert stage.stored != before

    stage.ask(command, **given)
    assert len(stage.rights_version.increments) == 2


def test_signals_of_two_commands_in_a_millisecond_are_two(stage):
    stage.join("bob", "c1")

    stage.notices.notify(["c1"])
    stage.notices.end(["c1"], "the user was removed")

    assert len(stage.inbox.bodies["c1"]) == 2


def test_a_repeated_ungrant_notifies_the_sessions_again(stage):
    stage.join("bob", "c1")

    assert stage.ask("ungrant", **LOGS)["ungranted"] is False
    assert stage.inbox.bodies["c1"]
    assert stage.events == []


# Found by seed 30000008 of revocation.
@pytest.mark.parametrize("user", ["bob", "@everyone"])
def test_a_right_that_was_taken_does_not_come_back_with_a_repeated_command(stage, user):
    given = {**LOGS, "user": user}
    first, second = (CommandDelivery(START + timedelta(seconds=number)) for number in range(2))
    stage.ask("grant", **given, delivery=first)
    assert stage.ask("grant", **given, delivery=replace(first, is_repeated=True))["granted"] is False
    stage.ask("ungrant", **given, delivery=second)

    with pytest.raises(Overtaken, match="was sent after this one"):
        stage.ask("grant", **given, delivery=replace(first, is_repeated=True))

    assert stage.ask("grants") == []
    assert stage.ask("grant", **given, delivery=first)["granted"] is True  # SQS keeps no order of commands


@pytest.mark.parametrize(
    ("first", "second", "is_left"),
    [
        (("group_add", LAB), ("group_remove", LAB), lambda stage: not stage.groups.kept),
        (
            ("user_groups", {"exchange": OWN, "groups": {"bob": ["lab"]}}),
            ("user_groups", {"exchange": OWN, "groups": {"bob": []}}),
            lambda stage: not stage.groups.kept,
        ),
        (
            ("secret", secret(user="bob")),
            ("secret", secret(NEWER, user="bob")),
            lambda stage: stage.secrets["bob"] == NEWER,
        ),
    ],
    ids=["members", "groups", "secrets"],
)
def test_what_a_later_command_changed_stays_when_one_is_repeated(stage, first, second, is_left):
    sent, later = (CommandDelivery(START + timedelta(seconds=number)) for number in range(2))
    stage.ask(first[0], **first[1], delivery=sent)
    stage.ask(first[0], **first[1], delivery=replace(sent, is_repeated=True))
    stage.ask(second[0], **second[1], delivery=later)

    with pytest.raises(Overtaken, match="was sent after this one"):
        stage.ask(first[0], **first[1], delivery=replace(sent, is_repeated=True))

    assert is_left(stage)


@pytest.mark.parametrize(
    ("command", "given"),
    [("forget_user", {"user": "bob"}), ("secret", secret(user="bob")), ("group_add", LAB)],
)
def test_a_command_about_an_earlier_user_does_not_concern_a_later_one_of_the_name(stage, command, given):
    repeated = CommandDelivery(START, is_repeated=True)
    stage.ask(command, **given, delivery=repeated)
    stage.ask("forget_user", user="bob")
    stage.users.put(replace(stage.users.find("bob"), created_at=START + timedelta(seconds=60)))
    before = stage.stored

    with pytest.raises(Overtaken, match="of 'bob'"):
        stage.ask(command, **given, delivery=repeated)

    assert stage.stored == before


def test_a_command_that_changes_nothing_is_the_last_one_too(stage):
    first, second, third = (CommandDelivery(START + timedelta(seconds=number)) for number in range(3))
    stage.ask("grant", **LOGS, delivery=first)
    stage.ask("grant", **LOGS, delivery=third)

    with pytest.raises(Overtaken):
        stage.ask("ungrant", **LOGS, delivery=replace(second, is_repeated=True))

    assert len(stage.events) == 1


def test_the_owner_of_an_exchange_grants_its_topics(stage):
    assert stage.ask("grant", by="alice", **LOGS)["granted"] is True

    with pytest.raises(NotPermitted):
        stage.ask("grant", by="alice", **{**LOGS, "exchange": OTHER})
    with pytest.raises(NotPermitted):
        stage.ask("ungrant", by="bob", **LOGS)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"exchange": PLAIN}, "is not live: declare it with `live` first"),
        ({"exchange": "xs_alise.fifo"}, "is not live: .*; did you mean 'xs_alice.fifo'"),
        ({"user": "dora"}, "there is no user 'dora'"),
    ],
)
def test_a_grant_requires_a_realm_and_a_user(stage, given, reason):
    with pytest.raises(NotFound, match=reason):
        stage.ask("grant", **{**LOGS, **given})


def test_an_unknown_caller_is_refused(stage):
    with pytest.raises(NotFound, match="user 'dora' does not exist"):
        stage.ask("grants", by="dora")


def test_an_exchange_that_is_being_deleted_is_no_realm(stage):
    stage.exchanges.records[OWN] = ExchangeRecord(OWN, None, START, is_deleting=True, live=LiveSettings())

    with pytest.raises(NotFound):
        stage.ask("grant", **LOGS)


def test_the_number_of_grants_is_limited(stage):
    for number in range(MAXIMUM_GRANTS):
        stage.ask("grant", user="bob", exchange=OWN, uri=f"a.{number}")

    with pytest.raises(TooManyGrants, match="grant a prefix"):
        stage.ask("grant", **LOGS)
    with pytest.raises(TooManyGrants):
        stage.ask("grant", **LOGS, deny=True)
    assert stage.ask("grant", **{**LOGS, "user": "@lab"})["granted"] is True


def test_the_number_of_grants_of_all_groups_is_limited(stage, monkeypatch):
    monkeypatch.setattr(rights_changes, "MAXIMUM_GROUP_GRANTS", 2)
    stage.ask("grant", **{**LOGS, "user": "@lab"})
    stage.ask("grant", **{**LOGS, "user": "@everyone"}, deny=True)

    with pytest.raises(TooManyGrants, match=r"grant a pattern with \{group\} to @everyone"):
        stage.ask("grant", **{**LOGS, "user": "@lab2"})
    assert stage.ask("grant", **{**LOGS, "user": "@lab"})["granted"] is False


def test_grants_are_listed_for_their_user_and_for_the_owner_of_the_exchange(stage):
    stage.ask("grant", **LOGS)
    stage.ask("grant", **{**LOGS, "exchange": OTHER})

    assert [grant["exchange"] for grant in stage.ask("grants")] == [OWN, OTHER]
    assert [grant["exchange"] for grant in stage.ask("grants", by="bob")] == [OWN, OTHER]
    assert [grant["exchange"] for grant in stage.ask("grants", by="alice")] == [OWN]
    assert [grant["exchange"] for grant in stage.ask("grants", exchange=OTHER)] == [OTHER]
    assert stage.ask("grants", user="alice") == []


def test_the_grants_of_realms_of_others_are_read_several_realms_at_a_time(stage):
    stage.ask("grant", **LOGS)
    stage.ask("grant", **{**LOGS, "exchange": OTHER})
    together: list[object] = []

    def parallel_map(function, values):
        together.append(list(values))
        return [function(one) for one in together[-1]]

    stage.notices = replace(stage.notices, sessions=replace(stage.notices.sessions, parallel_map=parallel_map))

    assert [grant["exchange"] for grant in stage.ask("grants", by="bob")] == [OWN, OTHER]
    assert together == [[OWN, OTHER], ["bob"], ["bob"]]


def test_a_user_of_an_identity_provider_needs_no_record(stage):
    grant = {"user": "ann@x.org", "exchange": OTHER, "uri": "a"}

    assert stage.ask("grant", **grant)["granted"] is True
    assert [one["user"] for one in stage.ask("grants")] == ["ann@x.org"]
    assert stage.ask("group_add", exchange=OTHER, group="lab", users=["ann@x.org"])["changed"] == ["ann@x.org"]
    with pytest.raises(NotFound, match=r"there is no user 'ann@x\.org'"):
        stage.ask("grant", **{**grant, "exchange": OWN})
    with pytest.raises(NotFound, match="there is no user 'dora'"):
        stage.ask("group_add", exchange=OWN, group="lab", users=["bob", "dora"])
    assert stage.groups.members(OWN) == []


def test_a_grant_to_a_group_is_listed_for_its_members(stage):
    stage.ask("grant", **{**LOGS, "user": "@lab"})
    stage.ask("grant", **{**LOGS, "user": "@everyone"}, deny=True)

    granted = {**LOGS, "user": "@lab", "right": "read"}
    denied = {**LOGS, "user": "@everyone", "right": "read", "deny": True}
    assert stage.ask("grants") == [denied, granted]
    assert stage.ask("grants", user="@lab") == [granted]
    assert stage.ask("grants", by="bob") == [denied]
    stage.ask("group_add", exchange=OWN, group="lab", users=["bob"])
    assert stage.ask("grants", by="bob") == [denied, granted]


def test_lists_of_those_who_may_not_configure_the_realm_read_nothing_of_others(stage, monkeypatch):
    stage.ask("grant", **LOGS)
    stage.ask("group_add", exchange=OWN, group="lab", users=["alice", "bob"])
    found = []
    for store, name in ((stage.users, "every"), (stage.grants, "grantees"), (stage.groups, "members")):
        monkeypatch.setattr(store, name, lambda *_, name=name: found.append(name))

    assert [one["user"] for one in stage.ask("grants", by="bob")] == ["bob"]
    assert stage.ask("groups", by="bob", exchange=OWN) == [{"exchange": OWN, "group": "lab", "user": "bob"}]
    assert stage.ask("groups", by="bob", exchange=OWN, group="other") == []
    assert found == []


def test_members_of_groups_are_added_and_listed(stage):
    of = {"exchange": OWN, "group": "lab"}
    assert stage.ask("group_add", by="alice", **of, users=["bob", "alice", "bob"]) == {
        **of,
        "changed": ["bob", "alice"],
        "unchanged": [],
    }
    assert stage.ask("group_add", **of, users=["bob"])["unchanged"] == ["bob"]
    assert stage.ask("groups", exchange=OWN) == [{**of, "user": "alice"}, {**of, "user": "bob"}]
    assert stage.ask("groups", exchange=OWN, group="other") == []
    assert stage.ask("groups", by="bob", exchange=OWN) == [{**of, "user": "bob"}]
    assert [(one.kind, one.outcome, one.destination, one.labels["group"]) for one in stage.events] == [
        ("group", "added", "bob", "lab"),
        ("group", "added", "alice", "lab"),
    ]
    with pytest.raises(NotPermitted):
        stage.ask("group_add", by="bob", **of, users=["bob"])


def test_a_removed_member_is_notified_when_no_cache_has_the_group(stage):
    of = {"exchange": OWN, "group": "lab"}
    stage.ask("group_add", **of, users=["bob", "alice"])
    stage.join("bob", "c1")
    stage.join("alice", "c2", session=2)
    assert stage.notified == []

    assert stage.ask("group_remove", **of, users=["bob", "root"]) == {**of, "changed": ["bob"], "unchanged": ["root"]}
    assert stage.notified == ["c1"]
    assert (stage.inbox.notified_at[0] - stage.groups.removed_at[-1]).total_seconds() == RIGHTS_SETTLE_SECONDS


def test_the_groups_of_users_are_set_those_that_end_first(stage, monkeypatch):
    monkeypatch.setattr(rights_changes, "MAXIMUM_CHANGES", 2)
    stage.ask("group_add", exchange=OTHER, group="old", users=["bob", "root"])
    stage.join("bob", "c1", realm=OTHER)
    wanted = {"exchange": OTHER, "groups": {"bob": ["new", "lab"], "root": ["old"]}}

    assert stage.ask("user_groups", **wanted) == {"exchange": OTHER, "changed": 2, "left": 1}
    assert ("old", "bob") not in stage.groups.members(OTHER)
    assert stage.notified == ["c1"]
    assert (stage.inbox.notified_at[0] - stage.groups.removed_at[-1]).total_seconds() == RIGHTS_SETTLE_SECONDS
    assert stage.ask("user_groups", **wanted) == {"exchange": OTHER, "changed": 1, "left": 0}
    assert stage.groups.members(OTHER) == [("lab", "bob"), ("new", "bob"), ("old", "root")]

    # Received twice: the function may have been killed before it notified the sessions.
    assert stage.ask("user_groups", **wanted)["changed"] == 0
    assert len(stage.inbox.notified_at) == 3


def test_a_groups_sessions_are_those_of_its_members_and_of_tokens_with_it(stage):
    stage.ask("group_add", exchange=OTHER, group="lab", users=["bob"])
    stage.join("bob", "c1", realm=OTHER, session=1)
    stage.join("ann@x.org", "c2", realm=OTHER, session=2, groups=["lab"])
    stage.join("eve@x.org", "c3", realm=OTHER, session=3, groups=["other"])
    stage.join("alice", "c4", realm=OTHER, session=4)

    stage.ask("ungrant", **{**LOGS, "exchange": OTHER, "user": "@lab"})
    assert stage.notified == ["c1", "c2"]
    stage.ask("ungrant", **{**LOGS, "exchange": OTHER, "user": "@everyone"})
    assert stage.notified == ["c1", "c2", "c3", "c4"]


def test_thousands_of_sessions_of_a_group_are_found_in_pages(stage):
    for number in range(1_050):
        stage.join(f"user-{number}", f"c{number}", session=number + 1, groups=["lab"])

    stage.ask("ungrant", **{**LOGS, "user": "@lab"})
    assert len(stage.notified) == 1_050


def test_a_deny_notifies_and_the_end_of_a_deny_does_not(stage):
    stage.join("bob", "c1")

    assert stage.ask("grant", **LOGS, deny=True) == {**LOGS, "right": "read", "deny": True, "granted": True}
    assert stage.notified == ["c1"]
    assert stage.ask("grant", **LOGS, deny=True)["granted"] is False
    assert len(stage.inbox.notified_at) == 2
    assert stage.grants.find(OWN, "bob").denies == (Grant(Right.READ, TopicPattern(MatchPolicy.PREFIX, "logs.")),)
    assert stage.ask("ungrant", **LOGS, deny=True)["ungranted"] is True
    assert len(stage.inbox.notified_at) == 2
    assert [event.kind for event in stage.events] == ["denied", "undenied"]


def effects(answer):
    return [(one["session"], one["uri"], one["effect"]) for one in answer["subscriptions"]]


def test_a_dry_run_shows_the_subscriptions_that_would_change_and_changes_nothing(stage):
    stage.ask("grant", **LOGS)
    stage.join("bob", "c1", session=1, subscribed=["logs.", "states."])
    stage.join("bob", "c2", session=2)
    stage.join("alice", "c3", session=3, subscribed=["logs."])
    events, increments = len(stage.events), len(stage.rights_version.increments)

    removal = stage.ask("ungrant", **LOGS, dry_run=True)
    addition = stage.ask("grant", **{**LOGS, "uri": "states."}, dry_run=True)
    deny = stage.ask("grant", **{**LOGS, "uri": "logs.secret."}, deny=True, dry_run=True)
    whole = stage.ask("grant", **{**LOGS, "user": "@everyone"}, deny=True, dry_run=True)

    assert removal == {
        **LOGS,
        "right": "read",
        "dry_run": True,
        "subscriptions": [{"user": "bob", "session": 1, "match": "prefix", "uri": "logs.", "effect": "ends"}],
        "more": 0,
    }
    assert effects(addition) == [(1, "states.", "permits")]
    assert effects(deny) == [(1, "logs.", "limits")]
    assert effects(whole) == [(1, "logs.", "ends"), (3, "logs.", "ends")]
    assert (stage.notified, len(stage.events), len(stage.grants.saved_at)) == ([], events, 1)
    assert len(stage.rights_version.increments) == increments


def test_a_dry_run_of_the_end_of_a_deny_shows_what_it_permits(stage):
    stage.ask("grant", **LOGS)
    stage.ask("grant", **{**LOGS, "uri": "logs.secret."}, deny=True)
    stage.join("bob", "c1", subscribed=["logs."])

    assert effects(stage.ask("ungrant", **{**LOGS, "uri": "logs.secret."}, deny=True, dry_run=True)) == [
        (1, "logs.", "permits")
    ]
    assert effects(stage.ask("ungrant", **{**LOGS, "uri": "other."}, dry_run=True)) == []


def test_a_dry_run_knows_groups_tokens_anonymous_sessions_and_removed_users(stage):
    lab = {**LOGS, "exchange": OTHER, "user": "@lab"}
    stage.ask("grant", **lab)
    stage.ask("group_add", exchange=OTHER, group="lab", users=["bob"])
    for number, (name, given) in enumerate(
        (
            ("bob", {}),
            ("ann@x.org", {"groups": ["lab"]}),
            ("bob", {"groups": ["lab"]}),  # a token with the name of a user of the stage gives no rights
            ("dora", {}),
            ("bob", {"method": AuthMethod.ANONYMOUS}),
        ),
        start=1,
    ):
        stage.join(name, f"c{number}", realm=OTHER, session=number, subscribed=["logs."], **given)
    stage.sessions.open(opened("c6", now=START))
    stage.realm_sessions.enter(OTHER, Member("c6", Listener(6, "bob", "x"), START), expires_at=START)
    stage.rights_version.increments.clear()

    assert effects(stage.ask("ungrant", **lab, dry_run=True)) == [(n, "logs.", "ends") for n in (1, 5, 2)]
    member = {"exchange": OTHER, "group": "lab", "users": ["bob", "ann@x.org"], "dry_run": True}
    # A group of the token remains.
    assert effects(stage.ask("group_remove", **member)) == [(1, "logs.", "ends"), (5, "logs.", "ends")]
    assert effects(stage.ask("group_add", **{**member, "group": "other"})) == []
    assert (stage.groups.members(OTHER), stage.rights_version.increments) == ([("lab", "bob")], [])


def test_a_session_that_has_not_joined_has_no_rights(stage):
    reader = RightsSourcesReader(stage.store, OWN, GroupGrants())

    assert reader.of_session(opened("c1", now=START)) is None


def test_a_dry_run_shows_a_part_of_many_subscriptions(stage, monkeypatch):
    monkeypatch.setattr(dry_run, "MAXIMUM_SUBSCRIPTIONS", 1)
    stage.ask("grant", **LOGS)
    stage.join("bob", "c1", subscribed=["logs.a", "logs.b", "logs.c"])

    answer = stage.ask("ungrant", **LOGS, dry_run=True)
    assert (len(answer["subscriptions"]), answer["more"]) == (1, 2)


def reasons(answer, effect):
    return [(one["kind"], one.get("user"), one["why"]) for one in answer["reasons"] if one["effect"] == effect]


def test_an_explanation_names_what_permits_and_why_other_grants_do_not_apply(stage):
    stage.ask("grant", **LOGS)
    stage.ask("grant", **LOGS, right="write")
    stage.ask("grant", **{**LOGS, "user": "@lab", "uri": "logs.{group}."})
    stage.ask("grant", **{**LOGS, "user": "@other"})
    stage.ask("grant", **{**LOGS, "user": "@unrelated", "uri": "states."})
    stage.ask("group_add", exchange=OWN, group="lab", users=["bob"])

    (answer,) = stage.ask("explain", by="alice", user="bob", exchange=OWN, topic="logs.lab.a")
    (own,) = stage.ask("explain", by="bob", user="bob", exchange=OWN, topic="logs.lab.a")

    # Only those who may configure a realm see its groups.
    assert own["reasons"] == [one for one in answer["reasons"] if one.get("user") != "@other"]
    assert (answer["permitted"], answer["groups"], answer["right"]) == (True, ["lab"], "read")
    assert reasons(answer, "permits") == [
        ("grant", "bob", "the grant of bob matches the topic"),
        ("grant", "@lab", "the grant of @lab matches the topic"),
    ]
    assert reasons(answer, "none") == [
        ("role", None, "the role subscriber gives no right to read xs_alice.fifo"),
        ("ownership", None, "the name of xs_alice.fifo gives bob no right to read"),
        ("grant", "bob", "it is a grant to write"),
        ("grant", "@other", "the user is not in the group other"),
    ]
    (other,) = stage.ask("explain", user="bob", exchange=OWN, topic="states.a")
    assert (other["permitted"], reasons(other, "permits")) == (False, [])
    assert ("grant", "bob", "its pattern does not match the topic") in reasons(other, "none")


def test_an_explanation_names_the_deny_that_wins(stage):
    stage.ask("grant", **{**LOGS, "user": "@everyone", "uri": "logs.secret."}, deny=True)

    (admin,) = stage.ask("explain", user="root", exchange=OWN, topic="logs.secret.a")
    (owner,) = stage.ask("explain", user="alice", exchange=OWN, topic="logs.secret.a", right="write")

    assert admin["permitted"] is False
    assert reasons(admin, "permits") == [("role", None, "the role admin may read xs_alice.fifo")]
    assert reasons(admin, "refuses") == [("deny", "@everyone", "the deny of @everyone matches the topic")]
    assert owner["permitted"] is True
    assert reasons(owner, "permits") == [("ownership", None, "xs_alice.fifo is the user's own by its name")]
    assert ("deny", "@everyone", "it is a deny to read") in reasons(owner, "none")


def test_an_explanation_of_a_topic_of_wamp_asks_for_a_grant_in_its_namespace(stage):
    stage.ask("grant", **{**LOGS, "user": "alice", "uri": ""})
    topic = "wamp.session.on_join"
    needed = "topics of WAMP need a grant whose pattern begins with wamp"

    (owner,) = stage.ask("explain", user="alice", exchange=OWN, topic=topic)
    assert owner["permitted"] is False
    assert [why for _, _, why in reasons(owner, "none")].count(needed) == 2
    assert stage.ask("explain", user="root", exchange=OWN, topic=topic)[0]["permitted"] is True
    stage.ask("grant", user="alice", exchange=OWN, uri=topic)
    assert stage.ask("explain", user="alice", exchange=OWN, topic=topic)[0]["permitted"] is True


def test_an_explanation_for_a_tokens_user_takes_the_tokens_groups(stage):
    stage.ask("grant", **{**LOGS, "exchange": OTHER, "user": "@everyone", "uri": "logs.{group}."})
    asked = {"user": "carol", "exchange": OTHER, "topic": "logs.lab.a"}

    (with_group,) = stage.ask("explain", **asked, groups=["lab"])
    (without,) = stage.ask("explain", **asked, groups=["other"], role="source")
    (by_default,) = stage.ask("explain", **asked)

    assert [one["permitted"] for one in (with_group, without, by_default)] == [True, False, False]
    # The exchange is carol's by name, but the carol of the provider is not the carol of the stage.
    assert ("ownership", None, "the user of an identity provider owns no exchange by name") in reasons(without, "none")
    with pytest.raises(NotFound, match="there is no user 'ann'"):
        stage.ask("explain", user="ann", exchange=OWN, topic="a", groups=["lab"])


def test_an_explanation_is_for_the_user_and_for_who_may_configure(stage):
    asked = {"user": "bob", "topic": "a"}

    assert [one["exchange"] for one in stage.ask("explain", **asked)] == [OWN, OTHER]
    assert [one["exchange"] for one in stage.ask("explain", by="bob", **asked)] == [OWN, OTHER]
    assert [one["exchange"] for one in stage.ask("explain", by="alice", **asked)] == [OWN]
    with pytest.raises(NotPermitted):
        stage.ask("explain", by="alice", **asked, exchange=OTHER)
    with pytest.raises(NotPermitted):
        stage.ask("explain", by="bob", user="alice", topic="a", exchange=OWN)
    with pytest.raises(NotPermitted):
        stage.ask("explain", by="bob", **asked, exchange=OWN, groups=["lab"])


def test_an_explanation_shows_a_part_of_many_reasons(stage, monkeypatch):
    monkeypatch.setattr("signalbox.live.admin.explanation.MAXIMUM_REASONS", 1)
    stage.ask("grant", **LOGS)

    (answer,) = stage.ask("explain", user="bob", exchange=OWN, topic="logs.a")
    assert (reasons(answer, "permits"), answer["more"]) == ([("grant", "bob", "the grant of bob matches the topic")], 2)


def test_credentials_are_stored_for_logins(stage):
    assert stage.ask("secret", user="bob", **secret()) == {"user": "bob", "methods": ["ticket", "wampcra"]}
    assert stage.secrets == {"bob": CREDENTIALS}
    assert [(event.kind, event.destination) for event in stage.events] == [("secret", "bob")]


def test_credentials_without_a_key_are_for_tickets_only(stage):
    without = StoredSecret.of("of-bob", salt="5a17" * 8, with_key=False)

    assert stage.ask("secret", user="bob", **secret(without))["methods"] == ["ticket"]
    assert stage.secrets["bob"] == without


def test_users_replace_their_own_secrets(stage):
    assert stage.ask("secret", by="bob", **secret())["user"] == "bob"
    assert stage.ask("secret", by="root", user="alice", **secret())["user"] == "alice"

    with pytest.raises(NotPermitted, match="only administrators"):
        stage.ask("secret", by="bob", user="alice", **secret())
    with pytest.raises(NotFound, match="administrators have no secret"):
        stage.ask("secret", **secret())
    with pytest.raises(NotFound, match="there is no user 'dora'"):
        stage.ask("secret", user="dora", **secret())


def test_the_secrets_of_several_users_are_stored_together(stage):
    several = [{"user": name, **secret()} for name in ("bob", "alice")]

    assert [one["user"] for one in stage.ask("secrets", secrets=several)] == ["bob", "alice"]
    assert stage.secrets == {"bob": CREDENTIALS, "alice": CREDENTIALS}
    assert [event.destination for event in stage.events] == ["bob", "alice"]
    assert len(stage.ask("secrets", by="root", secrets=several)) == 2
    with pytest.raises(NotPermitted, match="only administrators"):
        stage.ask("secrets", by="bob", secrets=several[:1])


def test_sessions_that_joined_by_a_replaced_secret_end_when_no_instance_admits_another(stage):
    stage.join("bob", "c1")
    stage.join("bob", "c2", realm=OTHER)
    stage.join("bob", "c3", session=2, method=AuthMethod.ANONYMOUS)
    stage.join("bob", "c4", session=3, groups=[], realm=OTHER)
    stage.join("alice", "c5", session=4)
    began = stage.clock.now()

    stage.ask("secret", user="bob", **secret())

    assert stage.notified == ["c1", "c2"]
    assert {json.loads(one)["heard"] for bodies in stage.inbox.bodies.values() for one in bodies} == {"killed"}
    assert (min(stage.inbox.notified_at) - began).total_seconds() == RIGHTS_SETTLE_SECONDS
    assert len(stage.rights_version.increments) == 1


def test_no_secret_is_stored_if_one_of_the_users_is_missing(stage):
    several = [{"user": name, **secret()} for name in ("bob", "dora", "ezra")]

    with pytest.raises(NotFound, match="there is no user 'dora', 'ezra'"):
        stage.ask("secrets", secrets=several)
    assert stage.secrets == {}


def test_all_problems_of_several_secrets_are_reported_together(stage):
    wrong = [{"user": "bob", **secret()}, {"user": "bob", **secret()}, {**secret(), "role": "x"}, secret(user="a_b")]

    found = problems(stage, "secrets", secrets=wrong)

    assert [one.partition(":")[0] for one in found] == [
        *("secrets[2].role", "secrets[2].user", "secrets[3].user", "secrets")
    ]
    assert found[-1] == "secrets: users bob have several"
    assert problems(stage, "secrets") == ["secrets: expected 1 to 200 secrets, not 0"]
    many = [{"user": f"u{number}", **secret()} for number in range(201)]
    assert problems(stage, "secrets", secrets=many) == ["secrets: expected 1 to 200 secrets, not 201"]


def test_a_removed_user_leaves_no_secret_rights_and_sessions_in_any_realm(stage):
    stage.ask("secret", user="bob", **secret())
    for command in (LOGS, DENY, {**LOGS, "exchange": OTHER, "uri": "a."}, {**LOGS, "user": "alice"}):
        stage.ask("grant", **command)
    stage.ask("group_add", **LAB)
    stage.users.remove("bob")
    stage.join("bob", "c1")
    stage.join("bob", "c2", realm=OTHER)
    stage.join("alice", "c3")

    assert stage.ask("forget_user", user="bob") == {
        "user": "bob",
        "ended": [
            {"exchange": OWN, "grants": 1, "denies": 1, "groups": ["lab"]},
            {"exchange": OTHER, "grants": 1, "denies": 0, "groups": []},
        ],
        "unlisted": 0,
        "notified_sessions": 2,
    }

    assert (stage.secrets, stage.groups.kept) == ({}, set())
    assert stage.secrets.tokens_ended.keys() == {(OTHER, "bob")}
    assert [one["user"] for one in stage.ask("grants")] == ["alice"]
    assert {connection: stage.inbox.bodies[connection][-1] for connection in ("c1", "c2")} == dict.fromkeys(
        ("c1", "c2"), '{"heard": "killed", "reason": "wamp.close.killed", "message": "the user was removed"}'
    )
    assert "c3" not in stage.inbox.bodies
    removed = [(event.kind, event.source, event.destination) for event in stage.events if event.outcome == "removed"]
    assert removed == [("user", OWN, "bob"), ("user", OTHER, "bob")]
    assert stage.ask("forget_user", user="bob")["ended"] == []
    with pytest.raises(NotPermitted):
        stage.ask("forget_user", by="alice", user="bob")


def test_the_sessions_of_a_removed_user_end_before_its_rights_are_read(stage, monkeypatch):
    stage.ask("secret", user="bob", **secret())
    stage.ask("grant", **LOGS)
    stage.join("bob", "c1")
    stage.rights_version.increments.clear()

    def unreadable(*_):
        raise EffectFailed("table 'Live': Throttled")

    monkeypatch.setattr(stage.grants, "realms_of", unreadable)
    with pytest.raises(EffectFailed):
        stage.ask("forget_user", user="bob")
    monkeypatch.undo()

    assert (stage.secrets, stage.notified) == ({}, ["c1"])
    ((changed_at, stored),) = stage.rights_version.increments
    assert stored == (dict(stage.grants.kept), set(), {})  # the secret was gone before
    assert (stage.inbox.notified_at[-1] - changed_at).total_seconds() == RIGHTS_SETTLE_SECONDS


def test_a_removal_ends_when_no_function_instance_has_the_rights_any_more(stage):
    stage.ask("grant", **LOGS)
    stage.ask("group_add", **LAB)
    stage.rights_version.increments.clear()

    stage.ask("forget_user", user="bob")

    (changed_at, stored) = stage.rights_version.increments[-1]
    assert stored == stage.stored
    assert changed_at == stage.grants.saved_at[-1] == stage.groups.removed_at[-1]
    assert (stage.clock.now() - changed_at).total_seconds() == RIGHTS_SETTLE_SECONDS

    begun = stage.clock.now()
    stage.ask("forget_user", user="bob")  # received twice: the function may have been killed before it settled
    assert (stage.clock.now() - begun).total_seconds() == RIGHTS_SETTLE_SECONDS


@pytest.mark.parametrize(
    ("command", "given", "reads"),
    [
        ("forget_user", {"user": "bob"}, 403),
        ("secret", {"user": "bob", **secret()}, 402),
        ("secrets", {"secrets": [{"user": one, **secret()} for one in ("alice", "bob")]}, 804),
        ("secrets", {"secrets": [{"user": one, **secret()} for one in ("alice", "bob", "root")]}, 402),
    ],
)
def test_the_sessions_of_users_in_many_realms_are_read_side_by_side(stage, command, given, reads):
    for number in range(400):
        name = f"xs_carol_{number}.fifo"
        stage.exchanges.create(ExchangeRecord(name, None, START, live=LiveSettings()))
    stage.join("bob", "c1")
    stage.join("bob", "c2", realm="xs_carol_399.fifo")
    stage.join("dan", "c3", session=2)
    at_once = []

    def parallel_map(function, values):
        found = list(values)
        at_once.append(len(found))
        return map(function, found)

    stage.notices = replace(stage.notices, sessions=replace(stage.notices.sessions, parallel_map=parallel_map))
    stage.ask(command, **given)

    assert sorted(stage.notified) == ["c1", "c2"]
    assert at_once[0] == reads


def test_no_session_joins_as_a_removed_user_without_a_secret(stage, monkeypatch):
    realm = stage.exchanges.find(OWN)
    stage.exchanges.save(replace(realm, live=LiveSettings(anonymous="bob", arvados=True)), replacing=realm)

    monkeypatch.setattr(stage.exchanges, "save", lambda *_, **__: None)
    with pytest.raises(GrantsChanged, match=f"another command changed exchange '{OWN}'"):
        stage.ask("forget_user", user="bob")
    monkeypatch.undo()
    stage.ask("forget_user", user="alice")
    assert stage.exchanges.find(OWN).live.anonymous == "bob"
    stage.ask("forget_user", user="bob")

    assert stage.exchanges.find(OWN).live == LiveSettings(arvados=True)


def test_a_removed_user_has_no_rights_in_a_realm_that_is_made_one_again(stage):
    stage.ask("grant", **LOGS)
    realm = stage.exchanges.find(OWN)
    paused = stage.exchanges.save(replace(realm, live=None), replacing=realm)

    stage.ask("forget_user", user="bob")
    stage.exchanges.save(replace(paused, live=LiveSettings()), replacing=paused)

    assert stage.ask("grants") == []


def test_a_realm_that_ends_leaves_no_grants_and_no_groups(stage):
    stage.ask("grant", **LOGS)
    stage.ask("group_add", **LAB)

    RightsChanges(stage.store, stage.notices, stage.events.extend, None).end_realm(OWN)

    assert (stage.ask("grants"), stage.ask("groups", exchange=OWN)) == ([], [])


@pytest.mark.parametrize(
    "change",
    [
        lambda stage: stage.ask("grant", **{**LOGS, "uri": "other."}),
        lambda stage: stage.ask("forget_user", user="bob"),
        lambda stage: RightsChanges(stage.store, stage.notices, stage.events.extend, None).end_realm(OWN),
    ],
    ids=["grant", "removal of the user", "end of the realm"],
)
def test_grants_that_another_command_changes_meanwhile_are_not_overwritten(stage, monkeypatch, change):
    stage.ask("grant", **LOGS)
    monkeypatch.setattr(stage.grants, "save", lambda *_, **__: False)

    with pytest.raises(GrantsChanged, match="another command changed the grants of 'bob'"):
        change(stage)


def test_all_problems_of_a_grant_are_reported_together(stage):
    assert problems(stage, "grant", user="no name", exchange="trial", right="configure", match="some", uri="a b") == [
        f"user: user 'no name': {EXPECTED}: 'no%20name'",
        "exchange: exchange 'trial': expected 'x' and letters, digits, '-' and '_', 80 in all at most",
        "right: expected one of read, write, not 'configure'",
        "match: expected one of exact, prefix, wildcard, not 'some'",
        "uri: topic 'a b' has white space",
    ]
    assert problems(stage, "ungrant") == [
        "user: is missing or empty",
        "exchange: is missing or empty",
        'uri: is missing; use "" with match prefix for all topics',
    ]
    assert problems(stage, "grant", user="bob", exchange=OWN, uri=5) == ["uri: expected a text, not 5"]


def test_all_problems_of_other_commands_are_reported_together(stage):
    assert problems(stage, "grant", user="bob", exchange=OWN, match="prefix", uri="a.{group}") == [
        "uri: prefix 'a.{group}' would match longer names, too: end it with a dot"
    ]
    assert problems(stage, "group_add", exchange=OWN, group="everyone", users=["@lab", "a b"]) == [
        "group: group 'everyone' is every joined session: it has no members of its own",
        "users: expected users, not '@lab': groups have no groups as members",
        f"users: user 'a b': {EXPECTED}: 'a%20b'",
    ]
    assert problems(stage, "group_remove", users=[]) == [
        "users: expected 1 to 100 users, not 0",
        "exchange: is missing or empty",
        "group: is missing or empty",
    ]
    assert problems(stage, "user_groups", exchange=OTHER, groups={}) == ["groups: expected 1 to 20 users, not 0"]
    assert problems(stage, "explain", topic="a" * 256, right="configure", groups=["a b"], role="admin") == [
        "user: is missing or empty",
        f"topic: routing key '{'a' * 256}' has 256 bytes of UTF-8; at most 255 are allowed",
        "right: expected one of read, write, not 'configure'",
        f"groups: group 'a b': {EXPECTED}: 'a%20b'",
        "role: expected one of source, subscriber, not 'admin'",
    ]
    assert problems(stage, "forget_user", user="no_name") == [
        "user: user 'no_name': expected 1 to 32 letters, digits and '-'"
    ]


def test_all_problems_of_a_secret_are_reported_together_without_its_text(stage):
    found = problems(stage, "secret", salt="salt", verifier="ab", key="of-bob")

    assert found == [
        "salt: expected 32 hexadecimal digits",
        "verifier: expected 64 hexadecimal digits",
        "key: is not the key whose SHA-256 is the verifier",
    ]
    assert problems(stage, "secret", **secret(key="k" * 44)) == ["key: is not the key whose SHA-256 is the verifier"]
    assert problems(stage, "secret", **secret(key="\ud800" * 44)) == [
        "key: is not the key whose SHA-256 is the verifier"
    ]
