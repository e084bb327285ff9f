"""Property: whatever users send, bind and deny, no user writes or reads what the table of rights does not allow."""

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from signalbox.aws.exchange.policy import ExchangeLocation, user_policy
from signalbox.errors import RejectedError
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.records import User
from signalbox.live.admin.denies import StoredDenies
from signalbox.messages import Attribute
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role
from tests.fakes.exchange import START
from tests.fakes.grants import deny
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

users = st.sampled_from(NAMES)
denies = st.tuples(
    st.sampled_from(EXCHANGES[:3]),
    st.sampled_from([*NAMES, "@everyone", "@lab"]),
    st.sampled_from(["read", "write"]),
    st.sampled_from(URIS),
    st.sampled_from(["exact", "prefix", "wildcard"]),
)
bindings = st.tuples(
    users,
    st.sampled_from(EXCHANGES),
    st.sampled_from([*QUEUES, *EXCHANGES]),
    st.sampled_from(["#", "*", "secret.#", "a"]),
)
publications = st.tuples(
    users,
    st.booleans(),
    st.sampled_from(EXCHANGES),
    st.sampled_from(KEYS),
    st.sets(st.sampled_from(FORGED), max_size=2),
)


@dataclass(frozen=True)
class Table:
    """The rights as the page states them, in the most naive way."""

    roles: dict[str, Role]
    members: set[str]
    denied: list[tuple[str, str, str, str, str]]

    def allows(self, user: str, right: str, name: str) -> bool:
        role, stem = self.roles[user], name.removesuffix(".fifo")
        if role in (Role.ADMIN, Role.FEEDER):
            return True
        is_own = stem.split("_")[1] == user
        if right == "read":
            return is_own or stem == "xlab_public"
        return is_own if role is Role.SOURCE or name.startswith("q_") else stem == f"xs_{user}"

    def denies(self, user: str, right: str, realm: str, key: str) -> bool:
        principals = {user, "@everyone"} | ({"@lab"} if user in self.members else set())
        return any(
            (realm, right) == (of, what) and whom in principals and naive_match(match, uri, key)
            for of, whom, what, uri, match in self.denied
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


@given(
    st.fixed_dictionaries({name: st.sampled_from(list(Role)) for name in NAMES}),
    st.sets(users),
    st.lists(denies, min_size=1, max_size=4),
    st.lists(bindings, max_size=8),
    st.lists(publications, min_size=1, max_size=8),
)
def test_no_user_writes_or_reads_what_the_table_does_not_allow(roles, members, denied, bound, published) -> None:
    table, stage = Table(roles, members, denied), declared(roles, members)
    for user, exchange, target, pattern in bound:
        field = "queue" if target in QUEUES else "destination"
        is_bound = attempt(stage, "bind", user, exchange=exchange, pattern=pattern, **{field: target})
        assert not is_bound or (table.allows(user, "read", exchange) and table.allows(user, "write", target))
    for number, one in enumerate(denied):
        realm, principal, right, uri, match = one
        if one not in denied[:number]:
            deny(stage.grants, realm, principal, right, uri, match=match)
    world = routing(stage)
    sent = {str(number): one for number, one in enumerate(published) if publish(stage, world, table, one, str(number))}

    for exchange in EXCHANGES:
        for _ in published:
            world.route(exchange)
        assert world.messages(exchange) == []

    for queue in QUEUES:
        for message in world.messages(queue):
            user, _, exchange, key, _ = sent[message.body]
            attributes = message.attributes
            assert (attributes["publisher"].text, attributes["exchange"].text) == (user, exchange)
            assert table.allows(user, "write", exchange)
            assert not table.denies(user, "write", exchange, key)
            owner = queue.split("_")[1]
            assert owner not in NAMES or not table.denies(owner, "read", exchange, key)
            assert not key.startswith("wamp")


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
        for exchange in EXCHANGES:
            stage.ask("bind", exchange=exchange, pattern="#", queue=queue)
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
    for router in world.routers:
        router.live = Live(world)
        router.denies = StoredDenies(stage.users, stage.grants, stage.groups)
    return world


def attempt(stage: ExchangeStage, command: str, user: str, **fields: object) -> bool:
    try:
        stage.ask(command, user=UserName(user), **fields)
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
