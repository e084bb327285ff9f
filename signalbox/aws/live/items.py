"""Keys of the table `Live`: connections and sessions, grants, groups and secrets, subscribers, and logs of topics."""

from datetime import datetime

from signalbox.aws.shared.expressions import Item
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.model.state import ConnectionId
from signalbox.live.rights.principals import GroupName, PrincipalName
from signalbox.live.wamp.messages import SessionId, SubscriptionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName

# Names of exchanges, users and groups have no `#`, so keys are unambiguous; a topic is always the rest of a key.
SESSION, OUTBOX, MARKS, GRANTS, SECRET = "session", "outbox", "marks", "grants", "secret"
FAILURES, VERSION = "failures", "version"
PRINCIPAL = "principal"
ENDED = "ended"
SUBSCRIBER, CHUNK = "at#", "changes#"
ALL_PATTERNS = "*"
ROWS_SECONDS = 600


def session_key(connection: ConnectionId) -> Item:
    """Return the key of a connection's session."""
    return {"pk": f"connection#{connection}", "sk": SESSION}


def outbox_key(connection: ConnectionId) -> Item:
    """Return the key of the record of a connection's posted items, in the partition of its session."""
    return {"pk": f"connection#{connection}", "sk": OUTBOX}


def marks_key(connection: ConnectionId) -> Item:
    """Return the key of the numbers of many topics or rows that belong to the record of the posted items."""
    return {"pk": f"connection#{connection}", "sk": MARKS}


def realm_partition(realm: ExchangeName) -> str:
    """Return the partition of the joined sessions of a realm."""
    return f"realm#{realm}"


def realm_session_key(realm: ExchangeName, session: SessionId) -> Item:
    """Return the key of a session in the partition of its realm."""
    return {"pk": realm_partition(realm), "sk": f"session#{number_key(session)}"}


def user_sessions_partition(realm: ExchangeName, user: UserName) -> str:
    """Return the partition of a user's sessions in a realm."""
    return f"sessions#{realm}#{user}"


def user_session_key(realm: ExchangeName, user: UserName, session: SessionId) -> Item:
    """Return the key of a session in the partition of its user."""
    return {"pk": user_sessions_partition(realm, user), "sk": number_key(session)}


def grants_key(realm: ExchangeName, user: str) -> Item:
    """Return the key of a user's own grants in a realm; the user may be one of an identity provider."""
    return {"pk": f"grants#{realm}#{user}", "sk": GRANTS}


def grantee_key(realm: ExchangeName, user: str) -> Item:
    """Return the key of a user among those with own grants in a realm."""
    return {"pk": f"grantees#{realm}", "sk": user}


def principal_key(realm: ExchangeName, user: str) -> Item:
    """Return the key of a user's groups of the stage, denies, and grants that denies limit.

    They are apart from the other grants: a version without denies does not read a grant that a deny limits.
    """
    return {"pk": f"grants#{realm}#{user}", "sk": PRINCIPAL}


def member_key(realm: ExchangeName, group: GroupName, user: str) -> Item:
    """Return the key of a member of a group of the stage, in the partition of all members of groups of a realm."""
    return {"pk": f"members#{realm}", "sk": f"{group}#{user}"}


def group_grants_partition(realm: ExchangeName) -> str:
    """Return the partition of the grants of all groups of a realm; sort keys are the principals."""
    return f"group-grants#{realm}"


def group_grants_key(realm: ExchangeName, principal: PrincipalName) -> Item:
    """Return the key of the grants of a group in a realm."""
    return {"pk": group_grants_partition(realm), "sk": principal}


def group_grants_version_key(realm: ExchangeName) -> Item:
    """Return the key of the version of the grants of all groups of a realm; each change raises the version."""
    return {"pk": group_grants_partition(realm), "sk": VERSION}


def secret_key(user: UserName) -> Item:
    """Return the key of a user's credentials."""
    return {"pk": f"secret#{user}", "sk": SECRET}


def pepper_key() -> Item:
    """Return the key of the stage's secret for credentials of unknown users."""
    return {"pk": "pepper", "sk": "pepper"}


def failures_key(user: UserName) -> Item:
    """Return the key of the counter of a user's failed logins."""
    return {"pk": f"secret#{user}", "sk": FAILURES}


def ended_tokens_key(realm: ExchangeName, user: UserName) -> Item:
    """Return the key of the time before which the tokens of a user of an issuer were ended."""
    return {"pk": f"token#{realm}#{user}", "sk": ENDED}


def subscriber_partition(realm: ExchangeName, pattern: TopicPattern) -> str:
    """Return the partition of a pattern's subscribers: one for each topic, and one for all patterns."""
    if pattern.match is MatchPolicy.EXACT:
        return topic_subscribers_partition(realm, RoutingKey(pattern.uri))
    return pattern_subscribers_partition(realm)


def topic_subscribers_partition(realm: ExchangeName, topic: RoutingKey) -> str:
    """Return the partition of the exact subscriptions of a topic."""
    return f"bucket#{realm}#={topic}"


def pattern_subscribers_partition(realm: ExchangeName) -> str:
    """Return the partition of the prefix and wildcard subscriptions of a realm."""
    return f"bucket#{realm}#{ALL_PATTERNS}"


def subscriber_version_key(partition: str) -> Item:
    """Return the key of the version of a partition of subscribers; each change raises the version."""
    return {"pk": partition, "sk": VERSION}


def chunk_key(partition: str, *, first: int, last: int) -> Item:
    """Return the key of older changes of a partition of subscribers, by their numbers; its version has the newest."""
    return {"pk": partition, "sk": f"{CHUNK}{number_key(last)}#{number_key(first)}"}


def chunks_between(numbers: range) -> tuple[str, str]:
    """Return the bounds of the sort keys of the chunks whose last change has one of these numbers."""
    return f"{CHUNK}{number_key(numbers.start)}", f"{CHUNK}{number_key(numbers.stop)}"


def subscriber_key(realm: ExchangeName, pattern: TopicPattern, connection: ConnectionId) -> Item:
    """Return the key of a connection's subscription."""
    return {"pk": subscriber_partition(realm, pattern), "sk": f"{SUBSCRIBER}{connection}#{pattern_number(pattern)}"}


def log_partition(realm: ExchangeName, topic: RoutingKey) -> str:
    """Return the partition of a topic's events."""
    return f"log#{realm}#{topic}"


def log_key(realm: ExchangeName, topic: RoutingKey, sequence: int) -> Item:
    """Return the key of an event, by its number in its topic."""
    return {"pk": log_partition(realm, topic), "sk": number_key(sequence)}


def rows_partition(realm: ExchangeName, at: datetime) -> str:
    """Return the partition of the events with log rows of a ten-minute period; `at` is in the period."""
    return f"rows#{realm}#{int(at.timestamp()) // ROWS_SECONDS}"


def row_key(realm: ExchangeName, at: datetime, number: int) -> Item:
    """Return the key of an event that carries a log row, by the row's id, which has up to 19 digits."""
    return {"pk": rows_partition(realm, at), "sk": row_sort_key(number)}


def row_sort_key(number: int) -> str:
    """Return the id of a log row as a sort key."""
    return f"{number:019d}"


def topics_partition(realm: ExchangeName) -> str:
    """Return the partition of the topics of a realm that have events; sort keys are the topics themselves."""
    return f"topics#{realm}"


def retained_keys(realm: ExchangeName, topic: RoutingKey) -> tuple[Item, Item]:
    """Return the keys of a topic's latest retained events: of the public one, and of the one for some sessions."""
    sort_key = {"sk": topic_sort_key(topic)}
    return {"pk": f"retained#{realm}"} | sort_key, {"pk": f"retained-for-some#{realm}"} | sort_key


def topic_sort_key(topic: RoutingKey) -> str:
    """Return the sort key of a topic: it begins with a dot, since a topic may be empty and a sort key may not."""
    return f".{topic}"


def last_topic(prefix: str) -> RoutingKey:
    """Return a text that is greater than all topics with a prefix, which have at most 255 bytes."""
    return RoutingKey(prefix + 64 * "\U0010ffff")


def topic_of(item: Item) -> RoutingKey:
    """Return the topic of an item in a partition of topics."""
    return RoutingKey(item["sk"][1:])


def number_key(number: SessionId | SubscriptionId | int) -> str:
    """Return a number as a sort key, padded to the digits of the largest id, so that keys sort as numbers do."""
    return f"{number:016d}"


def pattern_number(pattern: TopicPattern) -> str:
    """Return the id of a pattern as part of a sort key."""
    return number_key(pattern.subscription_id)


def opened_partition(at: datetime) -> str:
    """Return the partition of the open connections that were opened in a minute; `at` is in the minute."""
    return f"opened#{int(at.timestamp()) // 60}"


def opened_key(connection: ConnectionId, at: datetime) -> Item:
    """Return the key of a connection in the partition of its minute."""
    return {"pk": opened_partition(at), "sk": connection}


def second_key(at: datetime) -> Item:
    """Return the key of the counters of a second; `at` is in the second."""
    return {"pk": f"second#{int(at.timestamp())}", "sk": "connections"}
