"""What is published since a client's SUBSCRIBE, whatever past it requests and however long the request waits."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.read_limits import ReadsBusy
from signalbox.live.outbox.items import BackfillRequest
from signalbox.live.outbox.results import DeliveryOutcome
from signalbox.live.wamp.messages import PublicationId
from signalbox.live.wamp.options import AfterPublication, AfterTime, AfterTopicSequences, LastEvents
from tests.unit.live.outbox.test_writer import NOW, REALM, World, backfill, event, event_batch, subscribed

TOPICS = [RoutingKey(f"open.{number}") for number in range(4)]
SECOND = timedelta(seconds=1)
STARTS = [
    LastEvents(1),
    LastEvents(3),
    AfterPublication(PublicationId(2)),
    *(AfterTime(NOW + seconds * SECOND) for seconds in (-5, 0, 100)),
    AfterTopicSequences(NOW - 2 * SECOND, {TOPICS[0]: 1}),
    AfterTopicSequences(NOW + 100 * SECOND, {}),
]
RETAINED = backfill(None, get_retained=True)
REQUESTS = [RETAINED, *map(backfill, STARTS), *(backfill(start, get_retained=True) for start in STARTS)]


@dataclass(frozen=True)
class Published:
    """An event of a topic. Without a copy, its router did not find the subscription."""

    topic: RoutingKey = TOPICS[0]
    is_retained: bool = False
    has_copy: bool = True


@dataclass
class Story:
    """A log and a connection; the client has sent its SUBSCRIBE at NOW."""

    request: BackfillRequest
    world: World = field(default_factory=World)
    logged: list[LoggedEvent] = field(default_factory=list)

    def publish(self, some: Sequence[Published], *, at: timedelta) -> list[LoggedEvent]:
        for one in some:
            number = 1 + sum(one.topic == known.topic for known in self.logged)
            made = event(number, one.topic, is_retained=one.is_retained, at=NOW + at)
            self.logged.append(replace(made, publication=PublicationId(1 + len(self.logged))))
        new = self.logged[len(self.logged) - len(some) :]
        self.world.log.append(REALM, *new)
        return new

    def attempt(self, *, is_busy: bool) -> DeliveryOutcome:
        self.world.log.rows = 0
        self.world.log.problem = ReadsBusy("busy") if is_busy else None
        return self.world.deliver(replace(self.request, at=NOW)).outcome


several = st.lists(st.builds(Published, st.sampled_from(TOPICS), st.booleans(), st.booleans()), max_size=4)
PLAIN, STATE = Published(), Published(is_retained=True)


@given(st.sampled_from(REQUESTS), several, several, st.lists(several, max_size=3), st.integers(0, 3))
@example(backfill(LastEvents(1)), [PLAIN], [], [[PLAIN, PLAIN, PLAIN]], 9)
@example(RETAINED, [], [], [[PLAIN, STATE]], 9)
@example(RETAINED, [], [PLAIN, STATE], [], 0)
@example(backfill(AfterTime(NOW + 100 * SECOND)), [], [], [[PLAIN]], 9)
def test_each_event_since_the_request_arrives_once_and_in_the_order_of_its_topic(
    request: BackfillRequest,
    past: list[Published],
    in_front: list[Published],
    behind: list[list[Published]],
    small: int,
) -> None:
    """The items of `in_front` precede the request in the outbox, those of `behind` follow while it waits."""
    story, number = Story(request), 0
    story.world.log.small = small
    story.publish(past, at=-10 * SECOND)
    story.world.deliver(subscribed())
    for one, made in zip(in_front, story.publish(in_front, at=SECOND), strict=True):
        if one.has_copy or request.history is None:
            story.world.deliver(event_batch(made, item=f"f{made.publication}"))
    copies = list[LoggedEvent]()
    for number, some in enumerate(behind, start=1):
        copies += story.publish(some, at=(number + 1) * SECOND)
        story.attempt(is_busy=number % 2 == 1)
    while story.attempt(is_busy=False) is not DeliveryOutcome.DONE:
        pass
    for made in copies:
        story.world.deliver(event_batch(made, item=f"b{made.publication}"))

    got = [message[2] for message in story.world.posted()[1:]]
    assert len(got) == len({*got})
    assert {one.publication for one in story.logged[len(past) :]} <= {*got}
    places = [(one.topic, one.sequence) for one in story.logged]
    assert sorted(got, key=lambda one: places[one - 1][0]) == sorted(got, key=lambda one: places[one - 1])
