"""The procedures that can be called: WAMP's own for subscriptions and sessions, and ours for people who look on."""

from collections.abc import Mapping
from enum import Enum, auto


class Access(Enum):
    """Who may call a procedure."""

    JOINED = auto()  # everybody: what may be subscribed to is all that the answer shows
    GRANTED = auto()  # administrators, and to whom its URI is granted: it shows others, or ends their sessions


PROCEDURES: Mapping[str, Access] = {
    "wamp.subscription.get_events": Access.JOINED,
    "wamp.subscription.lookup": Access.JOINED,
    "wamp.subscription.match": Access.GRANTED,
    "wamp.subscription.list": Access.GRANTED,
    "wamp.subscription.get": Access.GRANTED,
    "wamp.subscription.list_subscribers": Access.GRANTED,
    "wamp.subscription.count_subscribers": Access.GRANTED,
    "wamp.session.count": Access.GRANTED,
    "wamp.session.list": Access.GRANTED,
    "wamp.session.get": Access.GRANTED,
    "wamp.session.kill": Access.GRANTED,
    "signalbox.topics": Access.JOINED,
    "signalbox.overview": Access.GRANTED,
    "signalbox.report": Access.GRANTED,
}
