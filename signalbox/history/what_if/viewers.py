"""Who has a right to past messages before and after a change of a grant, and how many messages that are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from signalbox.history.what_if.past_messages import Amount, TopicAmount

HAS = "1"


@dataclass(frozen=True, slots=True)
class Viewer:
    """A user, the messages to which the user has the right before and after, and the sessions in the window."""

    user: str
    before: Amount
    after: Amount
    sessions: int

    @property
    def gained(self) -> int:
        """Return the messages that the user would gain; negative for those that the user would lose."""
        return self.after.messages - self.before.messages

    def document(self) -> dict[str, object]:
        """Return the viewer as a JSON object."""
        return {
            "user": self.user,
            "before": self.before.document(),
            "after": self.after.document(),
            "sessions": self.sessions,
        }


def viewers(
    visibility: Iterable[Mapping[str, object]],
    checked: Sequence[str],
    topics: Sequence[TopicAmount],
    *,
    joined: Mapping[str, int],
) -> list[Viewer]:
    """Return the users of the `visibility` of a dry run, those with the largest change first.

    `checked` are the topics of its marks, in order. Messages of a topic with a publisher count for that user alone.
    """
    found = [one for entry in visibility for one in _viewers(entry, checked, topics, joined)]
    return sorted(found, key=lambda one: (-abs(one.gained), -one.after.messages, one.user))


def _viewers(
    entry: Mapping[str, object], checked: Sequence[str], topics: Sequence[TopicAmount], joined: Mapping[str, int]
) -> Iterator[Viewer]:
    before, after = (_marked(checked, str(entry[name])) for name in ("before", "after"))
    users = entry["users"]
    for user in users if isinstance(users, list) else ():
        own = [one for one in topics if one.publisher in (None, user)]
        yield Viewer(user, _sum(own, before), _sum(own, after), joined.get(user, 0))


def _marked(checked: Sequence[str], marks: str) -> frozenset[str]:
    return frozenset(topic for topic, mark in zip(checked, marks, strict=False) if mark == HAS)


def _sum(topics: Iterable[TopicAmount], names: frozenset[str]) -> Amount:
    amounts = [one.amount for one in topics if one.name in names]
    return Amount(
        sum(one.messages for one in amounts), sum(one.size_bytes for one in amounts), sum(one.pieces for one in amounts)
    )
