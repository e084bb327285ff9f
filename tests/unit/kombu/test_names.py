"""Names of kombu's exchanges and queues: a user's names are those that the user's rights include."""

import pytest
from amqp.exceptions import AMQPNotImplementedError
from hypothesis import example, given
from hypothesis import strategies as st

from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.topics import RoutingKey
from signalbox.kombu.names import Namespace, escaped, pattern_of
from signalbox.sarracenia.rights.names import UserName, parse_exchange_name, parse_queue_name, queue_user
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role, is_permitted, role_rights

ALICE, ADMINISTRATOR = Namespace(UserName("alice"), "dev-"), Namespace(None, "dev-")
CELERYS = ("celery", "celeryev", "celery.pidbox", "reply.celery.pidbox", "celery@host.example.celery.pidbox", "x" * 200)
OWN = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), max_size=60).filter(
    lambda name: not name.startswith(("q_", "xs_", "xl_", "xr_", "x")) and not name.endswith((".fifo", "-dlq"))
)


@given(OWN)
@example("public")
@example("tasks_public")
@example("taskspublic")
def test_a_name_is_its_users_own_and_without_a_user_nobodys(name: str) -> None:
    for parsed in (parse_queue_name(ALICE.queue(name)), parse_exchange_name(ALICE.exchange(name))):
        assert is_permitted(UserName("alice"), Role.SOURCE, Right.CONFIGURE, name=parsed)
        for ownership in Ownership:
            assert not is_permitted(UserName("bob"), Role.SOURCE, Right.READ, name=parsed, ownership=ownership)
    assert queue_user(parse_queue_name(ADMINISTRATOR.queue(name))) == ""
    assert not role_rights(Role.SOURCE, parse_exchange_name(ADMINISTRATOR.exchange(name)))
    assert len("dev-" + ALICE.exchange(name)) <= 80


@pytest.mark.parametrize("namespace", [ALICE, ADMINISTRATOR])
def test_different_names_stay_different(namespace: Namespace) -> None:
    names = [*CELERYS, "celery_pidbox", "celery-pidbox", "a_public", "a_public.", "x" * 201]

    assert len({namespace.exchange(name) for name in names}) == len(names)


@pytest.mark.parametrize("name", ["xpublic", "xs_bob_images", "xr_bob", "xweather_public"])
def test_an_exchange_of_sarracenia_keeps_its_name(name: str) -> None:
    assert ALICE.exchange(name) == ADMINISTRATOR.exchange(name) == name
    assert ALICE.queue("q_bob_all") == "q_bob_all"


def test_an_ordered_queue_is_refused() -> None:
    for ask in (ALICE.queue, ALICE.exchange):
        with pytest.raises(AMQPNotImplementedError, match="would be ordered"):
            ask("orders.fifo")


@pytest.mark.parametrize(
    ("kind", "bound", "published", "matches"),
    [
        ("direct", "a.*", "a.*", True),
        ("direct", "a.*", "a.b", False),
        ("direct", "#", "a", False),
        ("direct", "", "", True),
        ("topic", "a.*", "a.*", True),
        ("topic", "a.*", "a.b", True),
        ("topic", "a.*", "a.b.c", False),
        ("topic", "a.#", "a", True),
        ("fanout", "ignored", "a.b", True),
    ],
)
def test_a_binding_matches_as_its_exchange_s_type_says(kind: str, bound: str, published: str, *, matches: bool) -> None:
    bindings: BindingTrie[str] = BindingTrie()
    bindings.add(Pattern.parse(pattern_of(kind, bound)), "queue")

    assert bool(bindings.matching(RoutingKey(escaped(published)))) is matches
