"""Which logs are followed, and how far each is published: names, patterns of subscriptions, and stored positions."""

from datetime import timedelta

import pytest

from signalbox.errors import RejectedError
from signalbox.live.bridge.checkpoints import InvalidCheckpoint
from signalbox.live.bridge.log_positions import ENDED_KEPT_FOR, LogPosition, LogPositions
from signalbox.live.bridge.log_selection import ContainerSelection, ListedContainer
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from tests.fakes.bridge import NOON

OWNER, REQUEST, CONTAINER = "zzzzz-j7d0g-000000000000001", "zzzzz-xvhdp-000000000000001", "zzzzz-dz642-000000000000001"
LISTED = ListedContainer(CONTAINER, REQUEST, (OWNER,))


@pytest.mark.parametrize(
    ("name", "is_selected"),
    [("all", True), (CONTAINER, True), (REQUEST, True), (OWNER, True), ("zzzzz-tpzed-000000000000001", False)],
)
def test_names_select_containers_with_and_without_subscriptions(name, is_selected):
    everything = TopicPattern(MatchPolicy.PREFIX, "")

    assert ContainerSelection.parse([name]).selects(LISTED, [everything]) is is_selected


@pytest.mark.parametrize(
    ("match", "uri", "is_selected"),
    [
        (MatchPolicy.EXACT, f"container.{OWNER}.{CONTAINER}.log.stdout", True),
        (MatchPolicy.EXACT, f"container.{OWNER}.{CONTAINER}.running", False),
        (MatchPolicy.PREFIX, f"container.{OWNER}.{CONTAINER}.log.", True),
        (MatchPolicy.PREFIX, f"container.{OWNER}.{CONTAINER}.log.std", True),
        (MatchPolicy.PREFIX, f"container.{OWNER}.", True),
        (MatchPolicy.PREFIX, "record.", False),
        (MatchPolicy.WILDCARD, f"container..{CONTAINER}.log.", True),
        (MatchPolicy.WILDCARD, "container...log.stderr", True),
        (MatchPolicy.WILDCARD, "container...running", False),
        (MatchPolicy.WILDCARD, "container...other.", False),
    ],
)
def test_a_subscription_selects_the_containers_whose_logs_it_can_match(match, uri, is_selected):
    assert ContainerSelection.parse(["subscribed"]).selects(LISTED, [TopicPattern(match, uri)]) is is_selected


@pytest.mark.parametrize("name", ["none", "zzzzz-4zz18-000000000000001", ""])
def test_other_names_are_refused(name):
    with pytest.raises(RejectedError, match="--logs"):
        ContainerSelection.parse(["all", name])


def test_positions_are_read_as_they_are_written_without_containers_that_ended_long_ago():
    followed = LogPosition(CONTAINER, REQUEST, (OWNER,), {f"container.{OWNER}.{CONTAINER}.log.stdout": 12})
    ended = {"recent": NOON, "old": NOON - ENDED_KEPT_FOR}

    found = LogPositions.of([followed], ended, NOON + timedelta(seconds=1))

    assert LogPositions.parse(found.document()) == LogPositions((followed,), {"recent": NOON}) == found
    followed.offsets.clear()
    assert found.followed[0].offsets
    assert found.followed[0].prefixes() == (f"container.{OWNER}.{CONTAINER}.log.",)


@pytest.mark.parametrize("document", [{}, {"version": 2}, {"version": 1, "followed": [1], "ended": {}}])
def test_positions_that_a_bridge_has_not_written_are_refused(document):
    with pytest.raises(InvalidCheckpoint):
        LogPositions.parse(document)
