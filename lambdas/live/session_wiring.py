"""The wiring of the function `session`, made once for each function instance."""

import secrets
from functools import cache
from threading import Lock

from lambdas.live import wiring
from lambdas.shared import instance
from lambdas.shared.threads import inner_map
from signalbox.aws.exchange.allowances import DynamoAllowanceCounter
from signalbox.aws.exchange.sender import SqsExchangeSender
from signalbox.aws.live.accounts import DynamoAccounts, stage_pepper
from signalbox.aws.live.issuers import IssuerKeys
from signalbox.aws.live.json_documents import JsonDocuments
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.aws.live.outbox import SqsOutboxes
from signalbox.aws.live.overview_calls import SqsOverviewCalls
from signalbox.aws.live.sessions import DynamoRealmSessions
from signalbox.aws.live.subscribers import DynamoSubscribers
from signalbox.aws.live.tokens import JwtVerifier
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.routing.limits import Allowance
from signalbox.history.event import HistoryEvent
from signalbox.live.ports import LiveStore, LiveSubscribers, SessionPorts
from signalbox.live.procedures.realm_subscribers import CachedRealmSubscribers
from signalbox.live.router.directory import CachedSubscriberDirectory
from signalbox.live.router.write_limits import MAXIMUM_KILOBYTES
from signalbox.live.wamp.codec import MAXIMUM_ID

NONCE_BYTES, PEPPER_BYTES = 32, 32


@cache
def ports() -> SessionPorts:
    """Return the ports of sessions."""
    settings, table = instance.settings(), wiring.table()
    pepper = stage_pepper(table, secrets.token_urlsafe(PEPPER_BYTES))
    subscribers = DynamoSubscribers(table, inner_map)
    return SessionPorts(
        store=LiveStore(
            sessions=wiring.sessions(),
            realm_sessions=DynamoRealmSessions(table),
            accounts=DynamoAccounts(table, instance.table("EXCHANGE_TABLE"), pepper),
            log=DynamoTopicLog(table, inner_map, is_late=instance.is_late),
        ),
        subscribers=LiveSubscribers(
            subscribers, CachedRealmSubscribers(CachedSubscriberDirectory(subscribers, instance.CLOCK.now), Lock())
        ),
        inbox=wiring.inbox(),
        timers=wiring.timers(),
        outboxes=SqsOutboxes(instance.sqs(), settings.text("LIVE_OUTBOX_URL")),
        sender=SqsExchangeSender(
            instance.sqs(), settings.text("LIVE_INBOX_URL").rpartition("/")[0] + "/", instance.backoff()
        ),
        overview_calls=SqsOverviewCalls(instance.sqs(), settings.text("LIVE_OVERVIEW_URL")),
        allowance=Allowance(
            DynamoAllowanceCounter(instance.table("LIVE_TABLE", instance.ONCE), "written", instance.CLOCK.now),
            MAXIMUM_KILOBYTES,
            Lock(),
        ),
        names=StageNames(settings.text("STAGE"), settings.text("EXCHANGE_PREFIX")),
        pepper=pepper,
        now=instance.CLOCK.now,
        random_id=lambda: secrets.randbelow(MAXIMUM_ID) + 1,
        nonce=lambda: secrets.token_hex(NONCE_BYTES),
        record=_events().extend,
    )


@cache
def tokens() -> JwtVerifier:
    """Return the verifier of the tokens of realms' issuers."""
    return JwtVerifier(IssuerKeys(JsonDocuments(instance.is_local(), instance.seconds_left)))


def write_history() -> None:
    """Write and count the history events since the last call."""
    events = _events()
    instance.record(events)
    events.clear()


@cache
def _events() -> list[HistoryEvent]:
    return []  # appending to a list is thread-safe
