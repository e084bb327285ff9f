"""A deny wins over the role in every command: publications, and bindings of which it leaves nothing."""

import pytest

from signalbox.exchange.control.errors import NotPermitted
from tests.fakes.grants import deny
from tests.unit.exchange.control.stage import ALICE, BOB, ExchangeStage

REALM = "xs_alice_lab.fifo"


@pytest.fixture
def stage():
    stage = ExchangeStage()
    for exchange in (REALM, "xlab_public.fifo"):
        stage.ask("declare_exchange", exchange=exchange, live=True)
    stage.ask("declare_exchange", exchange="xs_alice")
    stage.ask("declare_queue", queue="q_bob")
    return stage


def publish(stage, key, user=ALICE, exchange=REALM):
    return stage.ask("publish", exchange=exchange, routing_key=key, body="b", user=user)


@pytest.mark.parametrize("principal", ["alice", "@everyone", "@lab"])
def test_a_denied_writer_publishes_nothing_by_command(stage, principal):
    stage.groups.add(REALM, "lab", "alice")
    deny(stage.grants, REALM, principal, "write", "secret.")

    with pytest.raises(NotPermitted, match=r"'alice' may not write 'secret.a' of exchange 'xs_alice_lab.fifo': a deny"):
        publish(stage, "secret.a")

    assert publish(stage, "open.a")["message_id"]
    assert publish(stage, "secret.a", user=None)["message_id"]  # administrators have no denies
    assert publish(stage, "secret.a", exchange="xs_alice")["message_id"]  # of another exchange
    assert sum(map(len, stage.sender.sent.values())) == 3


@pytest.mark.parametrize(
    ("match", "uri", "refused", "accepted"),
    [
        ("prefix", "secret.", ["secret.a", "secret.*", "secret.a.#", "secret.*.b"], ["#", "secret.#", "*.a", "s"]),
        ("prefix", "", ["#", "*", "a.#", "*.b"], []),
        ("exact", "a.b", ["a.b"], ["a.*", "a.#", "a.c"]),
        ("wildcard", "a..c", ["a.b.c", "a.*.c"], ["a.*.*", "a.b", "a.#.c"]),
    ],
)
def test_a_binding_of_which_a_deny_leaves_nothing_is_refused(stage, match, uri, refused, accepted):
    deny(stage.grants, "xlab_public.fifo", "bob", "read", uri, match=match)

    for pattern in refused:
        with pytest.raises(NotPermitted, match="may not read"):
            stage.ask("bind", exchange="xlab_public.fifo", queue="q_bob", pattern=pattern, user=BOB)

    for pattern in accepted:
        assert stage.ask("bind", exchange="xlab_public.fifo", queue="q_bob", pattern=pattern, user=BOB)["bound"]


def test_a_denied_writer_binds_no_exchange_to_the_realm(stage):
    deny(stage.grants, REALM, "alice", "write", "secret.")
    binding = {"exchange": "xs_alice", "destination": REALM, "user": ALICE}

    with pytest.raises(NotPermitted, match="may not write"):
        stage.ask("bind", pattern="secret.a", **binding)

    assert stage.ask("bind", pattern="#", **binding)["bound"]


def test_a_denied_user_still_unbinds(stage):
    stage.ask("bind", exchange="xlab_public.fifo", queue="q_bob", pattern="secret.a", user=BOB)
    deny(stage.grants, "xlab_public.fifo", "bob", "read", "secret.")

    assert stage.ask("unbind", exchange="xlab_public.fifo", queue="q_bob", pattern="secret.a", user=BOB)["unbound"]
