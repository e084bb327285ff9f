"""The sessions that a realm's settings do not admit any more."""

from dataclasses import replace

import pytest

from signalbox.exchange.model.issuers import Issuer
from signalbox.exchange.model.records import ExchangeRecord, LiveSettings
from signalbox.live.identity.tokens import CLUSTER
from signalbox.live.identity.trust import trust_of
from signalbox.live.model.state import Dialect
from signalbox.live.rights.settling import RIGHTS_SETTLE_SECONDS
from signalbox.live.wamp.authentication import AuthMethod
from tests.fakes.live import START
from tests.unit.live.admin.test_command_handlers import OWN, Stage

ISSUER = Issuer("https://id.example/a", "signalbox")
ALL = LiveSettings(anonymous="bob", issuers=(ISSUER,), arvados=True, arvados_api="https://arvados.example")
EVERY = ["anonymous", "arvados", "cluster", "secret", "token"]


@pytest.fixture
def stage():
    """A realm with a session of each kind."""
    found = Stage()
    found.join("bob", "secret", session=1)
    found.join("bob", "anonymous", session=2, method=AuthMethod.ANONYMOUS)
    of_tokens = {"token": (ISSUER.url, trust_of(ISSUER, [ISSUER])), "cluster": (CLUSTER, ALL.arvados_api)}
    for session, (connection, (issuer, trust)) in enumerate(of_tokens.items(), start=3):
        found.join("ann", connection, session=session, groups=[])
        fields = {"issuer": issuer, "trust": trust}
        change(found, connection, lambda one, fields=fields: replace(one, token=replace(one.token, **fields)))
    found.join("bob", "arvados", session=5)
    change(found, "arvados", lambda one: replace(one, dialect=Dialect.ARVADOS))
    return found


def change(stage, connection, changed):
    stored = stage.sessions.find(connection)
    assert stage.sessions.save(changed(stored.session), replacing=stored)


@pytest.mark.parametrize(
    ("live", "ended"),
    [
        (ALL, []),
        (replace(ALL, anonymous=None), ["anonymous"]),
        (replace(ALL, anonymous="alice"), ["anonymous"]),
        (replace(ALL, issuers=()), ["token"]),
        (replace(ALL, issuers=(replace(ISSUER, url="https://id.example/b"),)), ["token"]),
        (replace(ALL, issuers=(replace(ISSUER, audience="other"),)), ["token"]),
        (replace(ALL, issuers=(replace(ISSUER, groups_claim="teams"),)), ["token"]),
        (replace(ALL, issuers=(ISSUER, Issuer("https://id.example/b", "signalbox", label="b"))), ["token"]),
        (replace(ALL, issuers=(replace(ISSUER, origins=("https://login.example",)),)), []),
        (replace(ALL, arvados_api="https://other.example"), ["cluster"]),
        (replace(ALL, arvados_api=""), ["cluster"]),
        (replace(ALL, arvados=False), ["arvados"]),
        (None, EVERY),
    ],
)
def test_sessions_that_the_settings_do_not_admit_end(stage, live, ended):
    stage.exchanges.records[OWN], begun = ExchangeRecord(OWN, None, START, live=live), stage.clock.now()

    assert stage.notices.end_refused(OWN) == len(ended)

    assert stage.notified == ended
    assert (stage.clock.now() - begun).total_seconds() == RIGHTS_SETTLE_SECONDS


def test_all_sessions_of_a_deleted_exchange_end(stage):
    stage.exchanges.records[OWN] = ExchangeRecord(OWN, None, START, live=ALL, is_deleting=True)
    assert stage.notices.end_refused(OWN) == len(EVERY)
    del stage.exchanges.records[OWN]
    assert stage.notices.end_refused(OWN) == len(EVERY)


def test_a_realm_without_sessions_is_not_waited_for(stage):
    begun = stage.clock.now()

    assert stage.notices.end_refused("xs_carol.fifo") == 0
    assert stage.clock.now() == begun
    assert len(stage.rights_version.increments) == 1
