"""The table of WAMP procedures: for each URI, who may call it and which function answers it.

The permission check, the dispatch of calls, the features that WELCOME announces and a test of the documentation use it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Generic, TypeVar

from signalbox.live.identity.tokens import TokenIdentity
from signalbox.live.procedures import calls, overview, session_meta, subscription_meta
from signalbox.live.procedures.calls import CallContext
from signalbox.live.procedures.overview import OverviewContext
from signalbox.live.procedures.subscription_meta import RealmSubscription
from signalbox.live.rights.grants import Rights
from signalbox.live.wamp.messages import Payload

Context = TypeVar("Context")


class Access(Enum):
    """Who may call a procedure."""

    JOINED = auto()  # every joined session: the result holds only what the caller may subscribe to
    # Administrators and users with a read grant for the URI: the result shows other sessions, or the call ends one.
    GRANTED = auto()
    # Administrators and users whose role reads the realm: the result holds only what the caller may read.
    # No grant opens these procedures, since the owner of a realm would grant what belongs to the stage.
    READERS = auto()
    # Administrators: the result shows the whole stage.
    ADMINISTRATORS = auto()


@dataclass(frozen=True, slots=True)
class Procedure(Generic[Context]):
    """A procedure: its URI, who may call it, the function that answers it, and the feature that WELCOME announces."""

    uri: str
    access: Access
    answer: Callable[[Context, Payload], Payload]
    feature: str | None = None

    def is_permitted(self, rights: Rights) -> bool:
        """Return whether a user with these rights may call the procedure."""
        if self.access is Access.ADMINISTRATORS:
            return rights.is_admin
        if self.access is Access.READERS:
            return rights.is_admin or rights.reads_realm
        return self.access is Access.JOINED or rights.may_administer(self.uri)


def _over(
    load: Callable[[CallContext, Payload], Sequence[RealmSubscription]],
    answer: Callable[[Payload, Sequence[RealmSubscription]], Payload],
) -> Callable[[CallContext, Payload], Payload]:
    return _metered(lambda context, payload: answer(payload, load(context, payload)))


def _metered(answer: Callable[[CallContext, Payload], Payload]) -> Callable[[CallContext, Payload], Payload]:
    """Return a procedure that reads sessions of a realm, by the limits of what a user reads."""

    def metered(context: CallContext, payload: Payload) -> Payload:
        session = context.session  # which may have ended since
        reader = session.listener.authid if session.listener else session.connection
        with context.ports.store.log.request((context.realm, reader)) as log:
            return answer(replace(context, spend=log.spend), payload)

    return metered


SUBSCRIPTIONS, SESSIONS = "subscription_meta_api", "session_meta_api"
every = subscription_meta.every_subscription
# Answered by the function `session`, in the order of the connection's frames.
SESSION_PROCEDURES: tuple[Procedure[CallContext], ...] = (
    Procedure("wamp.subscription.get_events", Access.JOINED, calls.get_events, "event_history"),
    Procedure(
        "wamp.subscription.lookup",
        Access.JOINED,
        _over(subscription_meta.one_by_pattern, subscription_meta.lookup),
        SUBSCRIPTIONS,
    ),
    Procedure("wamp.subscription.match", Access.GRANTED, _over(every, subscription_meta.match), SUBSCRIPTIONS),
    Procedure("wamp.subscription.list", Access.GRANTED, _metered(subscription_meta.list_all), SUBSCRIPTIONS),
    Procedure(
        "wamp.subscription.get",
        Access.GRANTED,
        _over(subscription_meta.one_by_id, subscription_meta.get),
        SUBSCRIPTIONS,
    ),
    Procedure(
        "wamp.subscription.list_subscribers",
        Access.GRANTED,
        _over(every, subscription_meta.list_subscribers),
        SUBSCRIPTIONS,
    ),
    Procedure(
        "wamp.subscription.count_subscribers",
        Access.GRANTED,
        _over(every, subscription_meta.count_subscribers),
        SUBSCRIPTIONS,
    ),
    Procedure("wamp.session.count", Access.GRANTED, _metered(session_meta.count), SESSIONS),
    Procedure("wamp.session.list", Access.GRANTED, _metered(session_meta.list_ids), SESSIONS),
    Procedure("wamp.session.get", Access.GRANTED, session_meta.get, SESSIONS),
    Procedure("wamp.session.kill", Access.GRANTED, session_meta.kill, SESSIONS),
)
# Answered by the function `overview`, which alone may read the other capabilities' tables and the reports.
OVERVIEW_PROCEDURES: tuple[Procedure[OverviewContext], ...] = (
    Procedure("signalbox.topics", Access.JOINED, overview.list_topics),
    Procedure("signalbox.overview", Access.READERS, overview.summarize_stage),
    Procedure("signalbox.activity", Access.ADMINISTRATORS, overview.summarize_activity),
    Procedure("signalbox.report", Access.ADMINISTRATORS, overview.find_reports),
)
# Decided by the session's machine, since it changes the session.
RENEWAL: Procedure[TokenIdentity] = Procedure(session_meta.RENEW, Access.JOINED, session_meta.renewed)
_ALL: tuple[Procedure[Any], ...] = (*SESSION_PROCEDURES, *OVERVIEW_PROCEDURES, RENEWAL)
PROCEDURES: Mapping[str, Procedure[Any]] = {one.uri: one for one in _ALL}
FEATURES = frozenset(one.feature for one in PROCEDURES.values() if one.feature)
