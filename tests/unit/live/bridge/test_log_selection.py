"""Which logs are followed, and how far each is published: names, patterns of subscriptions, and stored positions."""

import json
import zlib
from base64 import b64encode
from datetime import timedelta
from random import Random
from string import ascii_lowercase, digits

import pytest

from signalbox.clients.bridge.log_relay import RelayPace
from signalbox.errors import RejectedError
from signalbox.live.bridge.checkpoints import InvalidCheckpoint
from signalbox.live.bridge.log_positions import ENDED_KEPT_FOR, MAXIMUM_BYTES, MAXIMUM_ENDED, LogPosition, LogPositions
from signalbox.live.bridge.log_selection import ContainerSelection, ListedContainer
from signalbox.live.bridge.topics import log_topic
from signalbox.live.log.events import MAXIMUM_EVENT_BYTES
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from tests.fakes.bridge import NOON

OWNER, REQUEST, CONTAINER = "zzzzz-j7d0g-000000000000001", "zzzzz-xvhdp-000000000000001", "zzzzz-dz642-000000000000001"
LISTED = ListedContainer(CONTAINER, REQUEST, (OWNER,))


def deflated(text: str) -> str:
    return b64encode(zlib.compress(text.encode())).decode()


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


def test_the_positions_of_as_many_logs_as_a_bridge_follows_reach_a_session():
    """An event above the limit comes without its payload, and the next run could not continue."""
    names = ("arv-mount", "container", "crunch-run", "crunchstat", "hoststat", "keepstore", "node", "stderr", "stdout")
    random = Random(1)  # noqa: S311 - UUIDs of a test
    uuids = ["".join(random.choices(ascii_lowercase + digits, k=15)) for _ in range(RelayPace().containers)]
    followed = [
        LogPosition(
            f"zzzzz-dz642-{one}",
            f"zzzzz-xvhdp-{one[::-1]}",
            owners := (f"zzzzz-j7d0g-{one[1:]}a", f"zzzzz-j7d0g-{one[2:]}bb"),
            {log_topic(owner, one, name): random.randrange(10**9) for owner in owners for name in names},
        )
        for one in uuids
    ]
    ended = {f"zzzzz-dz642-{number:015}": NOON for number in range(MAXIMUM_ENDED)}

    document = LogPositions.of(followed, ended, NOON).document()

    assert len(json.dumps(document)) < MAXIMUM_BYTES < MAXIMUM_EVENT_BYTES


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"version": 2},
        *({"version": 1, "deflated": one} for one in (1, "=", "YQ==", deflated("{}"), deflated('{"followed":[1]}'))),
        {"version": 1, "deflated": deflated(" " * 9_000_000)},
    ],
)
def test_positions_that_a_bridge_has_not_written_are_refused(document):
    with pytest.raises(InvalidCheckpoint):
        LogPositions.parse(document)
