"""Who has a right to past messages before and after a change."""

from signalbox.history.what_if.past_messages import Amount, TopicAmount
from signalbox.history.what_if.viewers import viewers

TOPICS = [TopicAmount("a", Amount(10, 100, 10)), TopicAmount("b", Amount(1, 5, 2)), TopicAmount("c", Amount(99, 1, 1))]


def test_messages_are_summed_by_the_topics_that_a_user_has_the_right_to():
    visibility = [
        {"users": ["ann", "bob"], "before": "01", "after": "11"},
        {"users": ["cho"], "before": "11", "after": "00"},
    ]

    found = viewers(visibility, ["a", "b"], TOPICS, joined={"bob": 3})

    assert [(one.user, one.gained, one.sessions) for one in found] == [("cho", -11, 0), ("ann", 10, 0), ("bob", 10, 3)]
    assert found[2].document() == {
        "user": "bob",
        "before": {"messages": 1, "bytes": 5},
        "after": {"messages": 11, "bytes": 105},
        "sessions": 3,
    }


def test_messages_of_a_publisher_count_for_that_user_alone():
    topics = [TopicAmount("a", Amount(10), "ann"), TopicAmount("a", Amount(1), "bob")]

    found = viewers([{"users": ["ann", "bob"], "before": "1", "after": "0"}], ["a"], topics, joined={})

    assert [(one.user, one.before.messages) for one in found] == [("ann", 10), ("bob", 1)]


def test_an_entry_without_users_is_ignored():
    assert viewers([{"users": None, "before": "1", "after": "1"}], ["a"], TOPICS, joined={}) == []
