"""The queries of past messages, in the engine of the emulator's Athena, and their rows."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.aws.history.past_messages import AthenaPastMessages, Selection, messages_query, splits_query
from signalbox.exchange.matching.regexes import pattern_regex
from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.patterns import Pattern
from signalbox.history.event import HistoryEvent
from signalbox.history.what_if.past_messages import MAXIMUM_ROWS, Amount, past_messages
from signalbox.history.what_if.window import Bucket, PastWindow
from tests.fakes import duckdb

NOW = datetime(2026, 11, 23, 12, 30, tzinfo=UTC)
WEEK = PastWindow.before(NOW, "7d")
HOURS = PastWindow.before(NOW, "2h")
PIECE = 65_536


class DuckDbAthena:
    """`Athena` over events in memory."""

    def __init__(self, *events):
        self.events = events

    def rows(self, query):
        return duckdb.results([query], self.events)[0]


def asked(*events, **fields):
    selection = Selection("xpublic", **{"regex": "^>", **fields})
    return AthenaPastMessages(DuckDbAthena(*events), "events_raw").matching(selection, WEEK)


def message(number, topic="a.b", *, kind="routed", ago=1.0, **fields):
    """Return the event of a copy of a message of some hours ago."""
    queue = fields.get("destination")
    given = {"source": "xpublic", "size_bytes": 100, "message_id": f"m{number}", "topic": topic, "labels": {}, **fields}
    event_id = f"{kind}:m{number}:{queue}"
    outcome = given.pop("outcome", "delivered" if kind == "routed" else "dropped")
    return HistoryEvent(event_id, NOW - timedelta(hours=ago), "exchange", kind, outcome, **given)


def test_a_message_counts_once_whatever_its_copies_retries_and_repetitions():
    found = asked(
        message(1, destination="q_a", size_bytes=120, labels={"publisher": "ann", "copy": "1"}),
        message(1, destination="q_b", ago=0.9, labels={"publisher": "ann", "copy": "2"}),
        message(1, destination="q_b", ago=0.8, labels={"publisher": "ann"}),
        message(1, destination="q_c", outcome="retried", labels={"publisher": "ann"}),
        message(2, kind="unrouted", size_bytes=PIECE + 1),
        message(3, kind="logged", size_bytes=0),
        message(3, kind="dead_letter"),
    )

    assert (found.total, found.new) == (Amount(3, PIECE + 101, 4), Amount(3, PIECE + 101, 4))
    assert found.largest_bytes == PIECE + 1
    assert [(one.name, one.amount.messages) for one in found.publishers] == [("ann", 1), ("", 2)][::-1]
    assert found.buckets == {datetime(2026, 11, 23, 11, tzinfo=UTC): 3}
    assert (found.first_at, found.last_at) == (NOW - timedelta(hours=1), NOW - timedelta(hours=1))


def test_a_message_whose_only_copy_became_a_dead_letter_counts_and_one_without_a_topic_does_not():
    found = asked(
        message(1, kind="dead_letter", outcome="dead", destination="q_b"),
        message(2, None, kind="dead_letter", outcome="dead"),
        message(3, destination="q_a"),
        queue="q_a",
    )

    assert (found.total.messages, found.new.messages) == (2, 1)


def test_messages_of_other_times_exchanges_capabilities_and_topics_do_not_count():
    found = asked(
        message(1, ago=7 * 24),
        message(2, ago=7 * 24 + 0.01),
        message(3, source="xother"),
        message(4, "b"),
        message(5, ago=-0.01),
        regex=pattern_regex(Pattern.parse("a.#")),
    )

    assert found.total.messages == 1


def test_messages_that_the_queue_got_or_would_get_are_not_new():
    found = asked(
        message(1, destination="q_a"),
        message(1, destination="q_b"),
        message(2, destination="q_b"),
        message(3, destination="q_a", outcome="retried"),
        message(4, "bound.it's", destination="q_b"),
        queue="q_a",
        present=[pattern_regex(Pattern.parse(text)) for text in ("x", "*.it's")],
    )

    assert (found.total.messages, found.new.messages) == (4, 2)


def test_topics_are_counted_by_publisher_where_that_matters():
    events = [message(n, "a", labels={"publisher": "ann"}) for n in range(3)]
    events += [message(9, "a", labels={"publisher": "bob"}), message(8, "b", labels={"publisher": "bob"})]

    found = asked(*events, by_publisher=True)

    counted = [(one.name, one.publisher, one.amount.messages) for one in found.topics]
    assert counted == [("a", "ann", 3), ("a", "bob", 1), ("b", "bob", 1)]
    assert [(one.name, one.amount.messages) for one in asked(*events).topics] == [("a", 4), ("b", 1)]


def test_the_users_who_joined_a_realm_are_counted_by_their_sessions():
    def session(number, outcome, **fields):
        given = {"source": "xpublic", "labels": {"user": "bob", "role": "subscriber"}, **fields}
        return HistoryEvent(
            f"session:{outcome}:{number}", NOW - timedelta(hours=3), "live", "session", outcome, **given
        )

    found = asked(
        *(session(number, "started") for number in (1, 1, 2)),
        session(3, "started", labels={"user": "ann"}),
        session(4, "started", source="xother"),
        session(5, "refused", labels={}),
        session(2, "ended"),
        message(1),
        is_realm=True,
    )

    assert found.joined == {"bob": 2, "ann": 1}
    assert found.total.messages == 1


def test_without_messages_everything_is_zero():
    found = asked(is_realm=True)

    assert (found.total, found.topics, found.buckets, found.joined) == (Amount(), [], {}, {})
    assert (found.first_at, found.topic_number, found.largest_bytes) == (None, 0, 0)


def test_of_many_topics_the_largest_are_listed_and_all_are_counted():
    events = [message(number, f"t{number}") for number in range(MAXIMUM_ROWS + 20)]

    found = asked(*events, message(5_000, "t7"))

    assert (len(found.topics), found.topic_number) == (MAXIMUM_ROWS, MAXIMUM_ROWS + 20)
    assert found.topics[0].name == "t7"


WORDS = ("", "a", "b", "a\n", "ü", "$", "*", "#", "<", ">", "[", "\\", "it's")


def test_random_messages_are_counted_as_a_model_counts_them():
    """The model is the exchange's own matcher, and a loop."""
    chance = random.Random(18)  # noqa: S311 - no secret
    topics = ["", *(".".join(chance.choices(WORDS, k=chance.randint(1, 4))) for _ in range(150))]
    events = [message(n, chance.choice(topics), ago=chance.uniform(0, 200), size_bytes=n) for n in range(600)]
    patterns = list(map(Pattern.parse, ("#", "a.#", "*", "#.a", "*.*", "a.*.#.it's", "$.#", "", "\\.#", "#.a\n")))
    queries = [messages_query(Selection("xpublic", pattern_regex(one)), WEEK, table="events_raw") for one in patterns]

    for pattern, rows in zip(patterns, duckdb.results(queries, events), strict=True):
        found = past_messages(rows, WEEK)
        trie = BindingTrie()
        trie.add(pattern, "queue")
        matched = [one for one in events if trie.matching(one.topic) and one.occurred_at >= WEEK.start]
        assert found.total == Amount(len(matched), sum(one.size_bytes for one in matched), len(matched)), pattern
        assert {one.name: one.amount.messages for one in found.topics} == Counter(one.topic for one in matched)
        assert found.buckets == Counter(Bucket.HOUR.begin(one.occurred_at) for one in matched)


def forwarded(number, outcome="deployed", *, kind="routed", **fields):
    labels = {"target": "lambda/meme", **fields.pop("labels", {})}
    given = {"source": "orders", "size_bytes": 10, "message_id": f"m{number}", "labels": labels, **fields}
    return HistoryEvent(f"{kind}:m{number}:{outcome}", NOW - timedelta(minutes=5), "splitting", kind, outcome, **given)


def test_the_messages_of_split_queues_are_counted_by_who_got_them_and_why():
    of_ann = {"session": "ann-1", "owner": "ann@desk", "verdict": "tenant matches"}
    events = [
        *(forwarded(number) for number in (1, 1, 2)),
        forwarded(3, "session", labels=of_ann, size_bytes=500),
        forwarded(1, "copied", labels=of_ann | {"verdict": "all"}),
        forwarded(3, "original", kind="returned", labels=of_ann),
        forwarded(4, source="other", labels={"target": "lambda/other"}),
        HistoryEvent("session:1", NOW, "splitting", "session", "ready"),
    ]

    found = AthenaPastMessages(DuckDbAthena(*events), "events_raw").splits(HOURS)

    assert (found.queues, found.targets) == (["orders", "other"], ["lambda/meme", "lambda/other"])
    own = found.of(queue="orders", target=None)
    assert (own.incoming, own.to_sessions, own.largest_bytes) == (Amount(3, 520), Amount(1, 500), 500)
    assert own.buckets == {datetime(2026, 11, 23, 12, 25, tzinfo=UTC): 3}
    assert [(one.session, one.event, one.verdict, one.amount.messages) for one in own.shares] == [
        (None, "routed: deployed", None, 2),
        ("ann-1", "returned: original", "tenant matches", 1),
        ("ann-1", "routed: copied", "all", 1),
        ("ann-1", "routed: session", "tenant matches", 1),
    ]
    assert found.of(queue=None, target="lambda/other").incoming == Amount(1, 10)
    assert not found.is_cut
    assert own.document()["messages"] == 3


@pytest.mark.parametrize(
    "query", [messages_query(Selection("x'y", "^>it's"), WEEK, table="t"), splits_query(HOURS, table="t")]
)
def test_every_text_in_a_query_is_quoted_and_days_before_the_window_are_not_read(query):
    assert query.count("'") % 2 == 0
    assert f"dt >= '{WEEK.start.date()}'" in query or f"dt >= '{HOURS.start.date()}'" in query
