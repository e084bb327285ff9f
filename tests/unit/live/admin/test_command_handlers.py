"""The handlers of commands about grants and secrets: permissions, results and notified sessions."""

from dataclasses import dataclass, field

import pytest

from signalbox.control.envelope import Envelope, InvalidCommand
from signalbox.exchange.control.errors import NotFound, NotPermitted
from signalbox.exchange.model.records import Exchange, LiveSettings, User
from signalbox.history.event import HistoryEvent
from signalbox.live.admin.command_handlers import MAXIMUM_GRANTS, GrantsChanged, LiveCommandHandlers, TooManyGrants
from signalbox.live.admin.commands import COMMANDS, secret_fields
from signalbox.live.admin.grants import Grant
from signalbox.live.admin.ports import LiveAdminPorts, StoredGrants
from signalbox.live.session.ports import Member
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.authentication import Credentials
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role
from tests.fakes.exchange import MemoryExchanges, MemoryTime, MemoryUsers
from tests.fakes.live import START, MemoryInbox, MemoryRealmSessions

OWN, OTHER, PLAIN = "xs_alice.fifo", "xs_carol.fifo", "xs_alice_plain.fifo"
LOGS = {"user": "bob", "exchange": OWN, "match": "prefix", "uri": "logs."}
CREDENTIALS = Credentials.of("of-bob", salt="5a17" * 8, with_key=True)


@dataclass
class MemoryGrants:
    kept: dict[tuple[str, str], StoredGrants] = field(default_factory=dict)

    def find(self, realm, user):
        return self.kept.get((realm, user), StoredGrants())

    def save(self, realm, user, grants, *, replacing):
        if self.find(realm, user) != replacing:
            return False
        self.kept[realm, user] = StoredGrants(tuple(grants), replacing.version + 1)
        return True


class MemorySecrets(dict):
    def put(self, secrets):
        self.update(secrets)

    def remove(self, user):
        self.pop(user, None)


class Stage:
    def __init__(self):
        self.exchanges, self.grants, self.secrets = MemoryExchanges(), MemoryGrants(), MemorySecrets()
        self.users, self.realm_sessions, self.inbox = MemoryUsers(), MemoryRealmSessions(), MemoryInbox()
        self.events: list[HistoryEvent] = []
        for name, live in ((OWN, LiveSettings()), (OTHER, LiveSettings()), (PLAIN, None)):
            self.exchanges.create(Exchange(name, None, START, live=live))
        for name, role in (("alice", Role.SOURCE), ("bob", Role.SUBSCRIBER), ("root", Role.ADMIN)):
            self.users.put(User(name, role, Ownership.STRICT, START, f"AIDA{name}"))
        self.ports = LiveAdminPorts(
            self.exchanges,
            self.users,
            self.grants,
            self.secrets,
            self.realm_sessions,
            self.inbox,
            MemoryTime(),
            self.events.extend,
        )

    def ask(self, command, *, by=None, **given):
        envelope = Envelope("1", None, {"command": command, "id": "1", **given})
        return LiveCommandHandlers(self.ports).answer(by, envelope.command(COMMANDS))

    def join(self, user, connection, *, realm=OWN, session=1):
        member = Member(connection, Listener(session, user, "subscriber"), START)
        self.realm_sessions.enter(realm, member, expires_at=START)


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


def test_a_removed_grant_notifies_the_sessions_of_the_user(stage):
    stage.ask("grant", **LOGS)
    stage.join("bob", "c1")
    stage.join("alice", "c2", session=2)

    assert stage.ask("ungrant", **LOGS)["ungranted"] is True
    assert stage.ask("grants") == []
    assert dict(stage.inbox.bodies) == {"c1": ['{"heard": "rights"}']}


def test_a_repeated_ungrant_notifies_the_sessions_again(stage):
    stage.join("bob", "c1")

    assert stage.ask("ungrant", **LOGS)["ungranted"] is False
    assert stage.inbox.bodies["c1"]
    assert stage.events == []


def test_the_owner_of_an_exchange_grants_its_topics(stage):
    assert stage.ask("grant", by="alice", **LOGS)["granted"] is True

    with pytest.raises(NotPermitted):
        stage.ask("grant", by="alice", **{**LOGS, "exchange": OTHER})
    with pytest.raises(NotPermitted):
        stage.ask("ungrant", by="bob", **LOGS)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"exchange": PLAIN}, "is not a realm: declare it with `live` first"),
        ({"exchange": "xs_alice_none.fifo"}, "is not a realm"),
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
    stage.exchanges.records[OWN] = Exchange(OWN, None, START, is_deleting=True, live=LiveSettings())

    with pytest.raises(NotFound):
        stage.ask("grant", **LOGS)


def test_concurrently_changed_grants_are_not_overwritten(stage):
    stage.grants.save = lambda *_, **__: False

    with pytest.raises(GrantsChanged):
        stage.ask("grant", **LOGS)


def test_the_number_of_grants_is_limited(stage):
    for number in range(MAXIMUM_GRANTS):
        stage.ask("grant", user="bob", exchange=OWN, uri=f"a.{number}")

    with pytest.raises(TooManyGrants, match="grant a prefix"):
        stage.ask("grant", **LOGS)


def test_grants_are_listed_for_their_user_and_for_the_owner_of_the_exchange(stage):
    stage.ask("grant", **LOGS)
    stage.ask("grant", **{**LOGS, "exchange": OTHER})

    assert [grant["exchange"] for grant in stage.ask("grants")] == [OWN, OTHER]
    assert [grant["exchange"] for grant in stage.ask("grants", by="bob")] == [OWN, OTHER]
    assert [grant["exchange"] for grant in stage.ask("grants", by="alice")] == [OWN]
    assert [grant["exchange"] for grant in stage.ask("grants", exchange=OTHER)] == [OTHER]
    assert stage.ask("grants", user="alice") == []


def test_credentials_are_stored_for_logins(stage):
    assert stage.ask("secret", user="bob", **secret()) == {"user": "bob", "methods": ["ticket", "wampcra"]}
    assert stage.secrets == {"bob": CREDENTIALS}
    assert [(event.kind, event.destination) for event in stage.events] == [("secret", "bob")]


def test_credentials_without_a_key_are_for_tickets_only(stage):
    without = Credentials.of("of-bob", salt="5a17" * 8, with_key=False, iterations=2000)

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


def test_a_deleted_secret_notifies_the_sessions_of_its_user(stage):
    stage.ask("secret", user="bob", **secret())
    stage.users.remove("bob")
    stage.join("bob", "c1")
    stage.join("bob", "c2", realm=OTHER)

    assert stage.ask("forget_secret", user="bob") == {"user": "bob", "told": 2}
    assert stage.secrets == {}
    assert set(stage.inbox.bodies) == {"c1", "c2"}
    with pytest.raises(NotPermitted):
        stage.ask("forget_secret", by="alice", user="bob")


def test_all_problems_of_a_grant_are_reported_together(stage):
    assert problems(stage, "grant", user="no_name", exchange="trial", right="configure", match="some", uri="a b") == [
        "user: user 'no_name': expected 1 to 32 letters, digits and '-'",
        "exchange: exchange 'trial': expected 'x' and letters, digits, '-' and '_', 80 in all at most",
        "right: expected one of read, write, not 'configure'",
        "match: expected one of exact, prefix, wildcard, not 'some'",
        "uri: topic 'a b' has white space",
    ]
    assert problems(stage, "ungrant", match="prefix") == [
        "user: is missing or empty",
        "exchange: is missing or empty",
        'uri: is missing; use "" with match prefix for all topics',
    ]


def test_all_problems_of_a_secret_are_reported_together_without_its_text(stage):
    found = problems(stage, "secret", salt="salt", verifier="ab", iterations=1, key="of-bob")

    assert found == [
        "iterations: expected 1000 to 1000000, not 1",
        "salt: expected 32 hexadecimal digits",
        "verifier: expected 64 hexadecimal digits",
        "key: is not the key whose SHA-256 is the verifier",
    ]
    assert problems(stage, "secret", **secret(key="k" * 44)) == ["key: is not the key whose SHA-256 is the verifier"]
    assert problems(stage, "secret", **secret(key="\ud800" * 44)) == [
        "key: is not the key whose SHA-256 is the verifier"
    ]
