"""The JSON document of a session's record, with the effects of the last frame that it decided."""

from collections.abc import Iterable, Mapping, Sequence

from signalbox.forms import Document, Form, tagged
from signalbox.live.arvados.filters import LogSubscription
from signalbox.live.log.documents import FORMS, PATTERN
from signalbox.live.model import effects
from signalbox.live.model.state import Dialect, Session
from signalbox.live.wamp.authentication import PROVIDER, AuthMethod, Identity
from signalbox.live.wamp.codec import parse, serialize
from signalbox.live.wamp.messages import Message, SubscriptionId
from signalbox.live.wamp.patterns import TopicPattern


def session_document(session: Session) -> dict[str, object]:
    """Return the document of a session."""
    document = SESSION.write(session)
    if session.dialect is Dialect.WAMP:
        del document["log_subscriptions"]
    return document


def session_of(document: Document) -> Session:
    """Return the session of a document."""
    return SESSION.read({"log_subscriptions": [], **document})


def _identity_row(identity: Identity) -> list[str]:
    provider = [] if identity.provider == PROVIDER else [identity.provider]
    return [identity.authid, identity.authrole, identity.method.value, *provider]


def _identity(row: Sequence[str]) -> Identity:
    authid, authrole, method, *provider = row
    return Identity(authid, authrole, AuthMethod(method), *provider)


def _pattern_list(patterns: Iterable[TopicPattern]) -> list[Document]:
    return [PATTERN.write(pattern) for pattern in sorted(patterns, key=lambda pattern: pattern.subscription_id)]


def _subscription_list(subscriptions: Mapping[SubscriptionId, TopicPattern]) -> list[Document]:
    return [PATTERN.write(pattern) for pattern in subscriptions.values()]


def _subscriptions(documents: Iterable[Document]) -> Mapping[SubscriptionId, TopicPattern]:
    return {pattern.subscription_id: pattern for pattern in map(PATTERN.read, documents)}


FORMS.row(LogSubscription)
FORMS.define(Message, Form(serialize, parse))
FORMS.define(Identity, Form(_identity_row, _identity))
FORMS.define(frozenset[TopicPattern], Form(_pattern_list, lambda documents: frozenset(map(PATTERN.read, documents))))
FORMS.define(Mapping[SubscriptionId, TopicPattern], Form(_subscription_list, _subscriptions))
EFFECT = tagged(
    "do",
    {
        "post": FORMS.record(effects.Post),
        "text": FORMS.record(effects.PostText),
        "catch_up": FORMS.record(effects.CatchUp),
        "bad_frame": FORMS.record(effects.RefuseFrame),
        "close": FORMS.record(effects.Close),
        "enter": FORMS.record(effects.Enter),
        "leave": FORMS.record(effects.Leave, names={"subscriptions": "patterns"}),
        "attach": FORMS.record(effects.Attach, flat=["pattern"]),
        "detach": FORMS.record(effects.Detach, flat=["pattern"]),
        "distribute": FORMS.record(effects.Distribute, names={"is_retained": "retain"}, flat=["payload"]),
        "answer": FORMS.record(effects.AnswerCall, flat=["payload"]),
        "drop": FORMS.record(effects.Drop),
        "fail": FORMS.record(effects.CountFailure, sparse=["reason"]),
    },
)
FORMS.define(effects.Effect, EFFECT)
SPARSE = ["token", "dialect", "is_batched", "secret", "network"]
SESSION = FORMS.record(Session, names={"is_batched": "batched"}, sparse=SPARSE)
