"""The JSON document of a session's record, with the effects of the last frame that it decided."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.arvados.filters import LogSubscription
from signalbox.live.identity.documents import token_document, token_of
from signalbox.live.log.documents import (
    Document,
    audience_document,
    audience_of,
    backfill_start_document,
    backfill_start_of,
    listener_document,
    listener_of,
    pattern_document,
    pattern_of,
    payload_document,
    payload_of,
)
from signalbox.live.session.effects import (
    AnswerCall,
    Attach,
    CatchUp,
    Close,
    CountFailure,
    Detach,
    Distribute,
    Drop,
    Effect,
    Enter,
    Leave,
    Post,
    PostText,
    RefuseFrame,
)
from signalbox.live.session.state import ConnectionId, Dialect, FrameId, Session, State
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.authentication import PROVIDER, AuthMethod, Identity
from signalbox.live.wamp.codec import parse, serialize
from signalbox.live.wamp.messages import SubscriptionId
from signalbox.sarracenia.rights.names import ExchangeName

DO = "do"


def session_document(session: Session) -> dict[str, object]:
    """Return the document of a session."""
    token = {} if session.token is None else {"token": token_document(session.token)}
    batched = {"batched": True} if session.is_batched else {}
    return {
        "connection": session.connection,
        "opened_at": session.opened_at.isoformat(),
        "deadline": session.deadline.isoformat(),
        "user_agent": session.user_agent,
        "state": session.state.value,
        "realm": session.realm,
        "session": session.session,
        "identity": None if session.identity is None else _identity_document(session.identity),
        "challenge": session.challenge,
        "features": sorted(session.features),
        "subscriptions": [pattern_document(pattern) for pattern in session.subscriptions.values()],
        "frames": list(session.frames),
        "pending": {frame: list(map(effect_document, effects)) for frame, effects in session.pending.items()},
        **token,
        **batched,
        **_dialect_document(session),
    }


def session_of(document: Document) -> Session:
    """Return the session of a document."""
    patterns = [pattern_of(one) for one in document["subscriptions"]]
    realm, identity = document["realm"], document["identity"]
    return Session(
        connection=ConnectionId(document["connection"]),
        opened_at=datetime.fromisoformat(document["opened_at"]),
        deadline=datetime.fromisoformat(document["deadline"]),
        user_agent=document["user_agent"],
        state=State(document["state"]),
        realm=None if realm is None else ExchangeName(realm),
        session=document["session"],
        identity=None if identity is None else _identity_of(identity),
        challenge=document["challenge"],
        features=frozenset(document["features"]),
        subscriptions={pattern.subscription_id: pattern for pattern in patterns},
        frames=tuple(map(FrameId, document["frames"])),
        pending={FrameId(frame): tuple(map(effect_of, found)) for frame, found in document["pending"].items()},
        token=token_of(document["token"]) if "token" in document else None,
        dialect=Dialect(document.get("dialect", Dialect.WAMP)),
        log_subscriptions=tuple(map(_log_subscription_of, document.get("log_subscriptions", ()))),
        is_batched=document.get("batched", False),
    )


def _identity_document(identity: Identity) -> list[str]:
    provider = [] if identity.provider == PROVIDER else [identity.provider]
    return [identity.authid, identity.authrole, identity.method.value, *provider]


def _identity_of(document: Sequence[str]) -> Identity:
    authid, authrole, method, *provider = document
    return Identity(authid, authrole, AuthMethod(method), *provider)


def effect_document(effect: Effect) -> dict[str, object]:
    """Return the document of an effect."""
    name = NAMES[type(effect)]
    return {DO: name, **FORMS[name].write(effect)}


def effect_of(document: Document) -> Effect:
    """Return the effect of a document."""
    return FORMS[document[DO]].read(document)


def _dialect_document(session: Session) -> dict[str, object]:
    """Return the fields of a session whose client uses another protocol than WAMP; most sessions have none."""
    if session.dialect is Dialect.WAMP:
        return {}
    subscriptions = [[one.subscription, one.filters, one.after] for one in session.log_subscriptions]
    return {"dialect": session.dialect.value, "log_subscriptions": subscriptions}


def _log_subscription_of(document: Sequence[Any]) -> LogSubscription:
    subscription, filters, after = document
    return LogSubscription(SubscriptionId(subscription), filters, after)


@dataclass(frozen=True, slots=True)
class _Form:
    """The functions that write and read an effect's document."""

    kind: type[Effect]
    write: Callable[[Any], dict[str, object]]
    read: Callable[[Document], Effect]


def _post_document(post: Post) -> dict[str, object]:
    return {"message": serialize(post.message), "ends": post.ends}


def _post_of(document: Document) -> Post:
    return Post(parse(document["message"]), ends=document["ends"])


def _text_document(post: PostText) -> dict[str, object]:
    return {"text": post.text, "begins": post.begins, "ends": post.ends, "expects_catch_up": post.expects_catch_up}


def _text_of(document: Document) -> PostText:
    return PostText(document["text"], document["begins"], document["ends"], document["expects_catch_up"])


def _enter_document(enter: Enter) -> dict[str, object]:
    return {"listener": listener_document(enter.listener)}


def _enter_of(document: Document) -> Enter:
    return Enter(_listener(document))


def _leave_document(leave: Leave) -> dict[str, object]:
    patterns = sorted(leave.subscriptions, key=lambda pattern: pattern.subscription_id)
    return {"listener": listener_document(leave.listener), "patterns": [pattern_document(one) for one in patterns]}


def _leave_of(document: Document) -> Leave:
    return Leave(_listener(document), frozenset(pattern_of(one) for one in document["patterns"]))


def _listener(document: Document) -> Listener:
    return Listener(*document["listener"])


def _attach_document(attach: Attach) -> dict[str, object]:
    past = {"get_retained": attach.get_retained, "history": backfill_start_document(attach.history)}
    return {**pattern_document(attach.pattern), **past}


def _attach_of(document: Document) -> Attach:
    return Attach(pattern_of(document), document["get_retained"], backfill_start_of(document["history"]))


def _distribute_document(distribute: Distribute) -> dict[str, object]:
    return {
        "publication": distribute.publication,
        "topic": distribute.topic,
        **payload_document(distribute.payload),
        "audience": audience_document(distribute.audience),
        "disclosed": listener_document(distribute.disclosed),
        "retain": distribute.is_retained,
        "request": distribute.request,
    }


def _distribute_of(document: Document) -> Distribute:
    return Distribute(
        publication=document["publication"],
        topic=RoutingKey(document["topic"]),
        payload=payload_of(document),
        audience=audience_of(document["audience"]),
        disclosed=listener_of(document["disclosed"]),
        is_retained=document["retain"],
        request=document["request"],
    )


def _answer_document(answer: AnswerCall) -> dict[str, object]:
    return {"request": answer.request, "procedure": answer.procedure, **payload_document(answer.payload)}


def _answer_of(document: Document) -> AnswerCall:
    return AnswerCall(document["request"], document["procedure"], payload_of(document))


def _failure_of(document: Document) -> CountFailure:
    return CountFailure(document["authid"], document.get("reason", ""))


def _failure_document(failure: CountFailure) -> dict[str, object]:
    reason = {"reason": failure.reason} if failure.reason else {}
    return {"authid": failure.authid, **reason}


FORMS: Mapping[str, _Form] = {
    "post": _Form(Post, _post_document, _post_of),
    "text": _Form(PostText, _text_document, _text_of),
    "catch_up": _Form(
        CatchUp, lambda one: {"subscription": one.subscription}, lambda document: CatchUp(document["subscription"])
    ),
    "bad_frame": _Form(RefuseFrame, lambda _: {}, lambda _: RefuseFrame()),
    "close": _Form(Close, lambda _: {}, lambda _: Close()),
    "enter": _Form(Enter, _enter_document, _enter_of),
    "leave": _Form(Leave, _leave_document, _leave_of),
    "attach": _Form(Attach, _attach_document, _attach_of),
    "detach": _Form(Detach, lambda one: pattern_document(one.pattern), lambda document: Detach(pattern_of(document))),
    "distribute": _Form(Distribute, _distribute_document, _distribute_of),
    "answer": _Form(AnswerCall, _answer_document, _answer_of),
    "drop": _Form(Drop, lambda drop: {"error": drop.error}, lambda document: Drop(document["error"])),
    "fail": _Form(CountFailure, _failure_document, _failure_of),
}
NAMES: Mapping[type[Effect], str] = {form.kind: name for name, form in FORMS.items()}
