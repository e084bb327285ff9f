"""Property: whatever users send, bind, grant and deny, each way in has what the table of rights allows, and no more.

The ways to write are commands, SQS, sessions, and bindings that lead into other realms; the ways to read are bindings,
the queues at the end of each chain of realms, and the subscriptions of sessions.
"""

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import product

from hypothesis import example, given
from hypothesis import strategies as st

from signalbox.aws.exchange.policy import ExchangeLocation, user_policy
from signalbox.errors import RejectedError
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.records import User
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.admin.denies import StoredDenies
from signalbox.live.admin.rights_sources import RightsSourcesReader
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.messages import Attribute
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role
from tests.fakes.clock import START
from tests.fakes.grants import deny, grant
from tests.unit.exchange.control.stage import ExchangeStage
from tests.unit.exchange.routing.routing_world import CONTROL_ID, World
from tests.unit.exchange.routing.test_router_live import Live

NAMES = ("ann", "ben", "cat")
EXCHANGES = ("xs_ann.fifo", "xs_ben_lab.fifo", "xlab_public.fifo", "xs_annie.fifo")
QUEUES = ("q_ann", "q_ben_all", "q_cat", "q_annie")
KEYS = ("a", "secret", "secret.a", "wamp.session.on_join", "")
URIS = ("a", "secret", "secret.", "")
ARN = "arn:aws:sqs:eu-central-1:1:"
# Names that mean something in the messages of the exchange, when others write them.
FORGED = ("publisher", "exchange", "live", "message_id", "sequence", "Reason", "retry", "expires_at", "headers")

PATTERNS = {
    "#": lambda _: True,
    "*": lambda key: key != "" and "." not in key,
    "secret.#": lambda key: key == "secret" or key.startswith("secret."),
    "a": lambda key: key == "a",
}
Rule = tuple[str, str, str, str, str]

users = st.sampled_from(NAMES)
rules = st.tuples(  # grants, or denies
    st.sampled_from(EXCHANGES[:3]),
    st.sampled_from([*NAMES, "@everyone", "@lab"]),
    st.sampled_from(["read", "write"]),
    st.sampled_from(URIS),
    st.sampled_from(["exact", "prefix", "wildcard"]),
)
bindings = st.tuples(
    st.none() | users,  # by an administrator, or a user
    st.sampled_from(EXCHANGES),
    st.sampled_from([*QUEUES, *EXCHANGES]),
    st.sampled_from(list(PATTERNS)),
)
publications = st.tuples(
    users,
    st.booleans(),
    st.sampled_from(EXCHANGES),
    st.sampled_from(KEYS),
    st.sets(st.sampled_from(FORGED), max_size=2),
)


@dataclass
class Table:
    """The rights as the page states them, in the most naive way. `bound` are the bindings that exist."""

    roles: dict[str, Role]
    members: set[str]
    granted: list[Rule]
    denied: list[Rule]
    bound: set[tuple[str, str, str]] = field(default_factory=set)

    def allows(self, user: str, right: str, name: str) -> bool:
        role, stem = self.roles[user], name.removesuffix(".fifo")
        if role in (Role.ADMIN, Role.FEEDER):
            return True
        is_own = stem.split("_")[1] == user
        if right == "read":
            return is_own or stem == "xlab_public"
        return is_own if role is Role.SOURCE or name.startswith("q_") else stem == f"xs_{user}"

    def denies(self, user: str, right: str, realm: str, key: str) -> bool:
        return self._has_rule(self.denied, user, right, realm, key)

    def allows_session(self, user: str, right: str, realm: str, key: str) -> bool:
        is_administrator, is_reserved = self.roles[user] is Role.ADMIN, key.startswith("wamp")
        by_role = self.allows(user, right, realm) and (is_administrator or not is_reserved)
        by_grant = not is_reserved and self._has_rule(self.granted, user, right, realm, key)
        return (by_role or by_grant) and not self.denies(user, right, realm, key)

    def has_way(self, publisher: str, realm: str, key: str, queue: str, *, seen: frozenset[str] = frozenset()) -> bool:
        """Return whether a publication has a way from a realm to a queue through realms that are open to both users."""
        reader = queue.split("_")[1]
        is_open = not self.denies(publisher, "write", realm, key) and not self.denies(reader, "read", realm, key)
        if realm in seen or not is_open or key.startswith("wamp"):
            return False
        targets = {target for exchange, target, pattern in self.bound if exchange == realm and PATTERNS[pattern](key)}
        onward = seen | {realm}
        return queue in targets or any(
            self.has_way(publisher, target, key, queue, seen=onward) for target in targets & set(EXCHANGES)
        )

    def _has_rule(self, rules: list[Rule], user: str, right: str, realm: str, key: str) -> bool:
        if user not in self.roles:  # only administrators read the queue of a user who does not exist
            return False
        principals = {user, "@everyone"} | ({"@lab"} if user in self.members else set())
        return any(
            (realm, right) == (of, what) and whom in principals and naive_match(match, uri, key)
            for of, whom, what, uri, match in rules
        )


def naive_match(match: str, uri: str, key: str) -> bool:
    if match == "prefix":
        return key.startswith(uri)
    if match == "exact":
        return key == uri
    words, parts = (key.split(".") if key else []), uri.split(".")
    return len(words) == len(parts) and all(part in ("", word) for part, word in zip(parts, words, strict=True))


def may_send(user: str, role: Role, exchange: str) -> bool:
    """Return whether IAM lets a user send to an exchange's queue."""
    location = ExchangeLocation(StageNames("s"), ARN, "arn:aws:kms:eu-central-1:1:key/k")
    statements = user_policy(UserName(user), role, Ownership.STRICT, location)["Statement"]
    return any(
        fnmatchcase(ARN + exchange, resource)
        for statement in statements  # type: ignore[attr-defined]  # a list of statements
        if "sqs:SendMessage" in statement["Action"]
        for resource in statement["Resource"]
    )


CHAIN = [(None, "xs_ann.fifo", "xs_ben_lab.fifo", "#"), (None, "xs_ben_lab.fifo", "q_cat", "#")]
SOURCES = dict.fromkeys(NAMES, Role.SOURCE)
BY_SQS = [("ann", False, "xs_ann.fifo", "a", set[str]())]


@example(SOURCES, set(), ([], [("xs_ben_lab.fifo", "ann", "write", "a", "exact")]), CHAIN, BY_SQS)
@example(SOURCES, {"cat"}, ([], [("xs_ben_lab.fifo", "@lab", "read", "a", "exact")]), CHAIN, BY_SQS)
@example(
    SOURCES,
    set(),
    ([], [("xs_ann.fifo", "@everyone", "read", "a", "exact")]),
    [(None, "xs_ann.fifo", one, "#") for one in ("q_annie", "q_cat")],
    BY_SQS,
)
@given(
    st.fixed_dictionaries({name: st.sampled_from(list(Role)) for name in NAMES}),
    st.sets(users),
    st.tuples(st.lists(rules, max_size=3, unique=True), st.lists(rules, min_size=1, max_size=4, unique=True)),
    st.lists(bindings, max_size=12),
    st.lists(publications, min_size=1, max_size=8),
)
def test_each_way_in_has_what_the_table_allows_and_no_more(roles, members, given_rules, bound, published) -> None:
    table, stage = Table(roles, members, *given_rules), declared(roles, members)
    for user, exchange, target, pattern in bound:
        kind = "queue" if target in QUEUES else "destination"
        is_bound = attempt(stage, "bind", user, exchange=exchange, pattern=pattern, **{kind: target})
        is_allowed = user is None or (table.allows(user, "read", exchange) and table.allows(user, "write", target))
        assert is_bound == (is_allowed and target != exchange)
        table.bound |= {(exchange, target, pattern)} if is_bound else set()
    store_rules(stage, table)
    world = routing(stage)
    sent = {str(number): one for number, one in enumerate(published) if publish(stage, world, table, one, str(number))}

    for user, realm, right, key in product(NAMES, EXCHANGES, ("read", "write"), KEYS):
        assert session_may(stage, user, realm, right, key) == table.allows_session(user, right, realm, key)

    for exchange in EXCHANGES:
        for _ in published:
            world.route(exchange)
        assert world.messages(exchange) == []

    for queue in QUEUES:
        found = {message.body: message.attributes for message in world.messages(queue)}
        assert found.keys() == {
            body
            for body, (user, is_command, exchange, key, forged) in sent.items()
            if table.has_way(user, exchange, key, queue)
            and (is_command or "headers" not in forged)  # by SQS the attribute must be JSON
        }
        for body, attributes in found.items():
            user, _, exchange, _, _ = sent[body]
            assert (attributes["publisher"].text, attributes["exchange"].text) == (user, exchange)
            assert table.allows(user, "write", exchange)


def session_may(stage: ExchangeStage, user: str, realm: str, right: str, key: str) -> bool:
    """Return whether the session of a user may receive or publish a topic; a subscription to it has the same answer."""
    grants = stage.grants.of_groups(realm)
    sources = RightsSourcesReader(StoredDenies(stage.users, stage.grants, stage.groups), realm, grants).of_user(user)
    assert sources is not None
    if right == "write":
        return sources.rights.may_publish(RoutingKey(key))
    received = sources.rights.may_receive(RoutingKey(key))
    assert not key or received == sources.rights.may_subscribe(TopicPattern.parse(key))
    return received


def store_rules(stage: ExchangeStage, table: Table) -> None:
    for add, rules_of_all in ((grant, table.granted), (deny, table.denied)):
        for realm, principal, right, uri, match in rules_of_all:
            add(stage.grants, realm, principal, right, uri, match=match)


def declared(roles, members) -> ExchangeStage:
    stage = ExchangeStage()
    for name, role in roles.items():
        stage.users.put(User(UserName(name), role, Ownership.STRICT, START, f"AIDA{name}"))
    for exchange in EXCHANGES:
        stage.ask("declare_exchange", exchange=exchange, live=True)
        for member in members:
            stage.groups.add(exchange, "lab", member)
    for queue in QUEUES:
        stage.ask("declare_queue", queue=queue)
    return stage


def routing(stage: ExchangeStage) -> World:
    """Return a world that routes by the bindings of a stage."""
    world = World()
    for exchange in EXCHANGES:
        world.declare(exchange)
    for queue in QUEUES:
        world.bind(EXCHANGES[0], "never", queue=queue)
    world.table.exchanges, world.table.bound = dict(stage.exchanges.records), list(stage.bindings.bound)
    world.table.users = {f"AIDA{name}": UserName(name) for name in NAMES}
    world.use(live=Live(world), denies=StoredDenies(stage.users, stage.grants, stage.groups))
    return world


def attempt(stage: ExchangeStage, command: str, user: str | None, **fields: object) -> bool:
    try:
        stage.ask(command, user=user and UserName(user), **fields)
    except RejectedError:
        return False
    return True


def publish(stage: ExchangeStage, world: World, table: Table, one, body: str) -> bool:
    """Publish by command or by SQS with forged headers; return whether the message was accepted into the queue."""
    user, is_command, exchange, key, forged = one
    headers = dict.fromkeys(forged, "ann")
    if is_command:
        fields = {"exchange": exchange, "routing_key": key, "body": body, "headers": headers}
        if not attempt(stage, "publish", user, **fields):
            return False
        assert table.allows(user, "write", exchange)
        assert not table.denies(user, "write", exchange, key)
        message = stage.sender.sent[exchange][-1]
        system = {**message.system_attributes, "MessageDeduplicationId": body}
        world.sqs.queues[exchange].send(replace(message, system_attributes=system), sender=f"{CONTROL_ID}:control")
        return True
    is_permitted = may_send(user, table.roles[user], exchange)
    assert is_permitted == table.allows(user, "write", exchange)
    if is_permitted:
        message = MessageProperties.of_publication(key, body).published(deduplication_id=body)
        attributes = {**message.attributes, **{name: Attribute("String", text) for name, text in headers.items()}}
        world.sqs.queues[exchange].send(replace(message, attributes=attributes), sender=f"AIDA{user}")
    return is_permitted
