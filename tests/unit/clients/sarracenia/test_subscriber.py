"""What a subscriber makes of each message."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.clients.sarracenia.downloader import Done
from signalbox.clients.sarracenia.subscriber import Failed, Outcome, Received, Subscriber
from signalbox.errors import RejectedError, UnavailableError
from signalbox.sarracenia.formats.announcement import Announcement
from signalbox.sarracenia.formats.identity import Identity
from signalbox.sarracenia.formats.payloads import Format, payload
from signalbox.sarracenia.subscription.filters import Filter
from signalbox.sarracenia.subscription.limits import Limits

MOMENT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
FILE = Announcement(MOMENT, "https://e/", "a/f", identity=Identity("md5", "AA=="), modified_at=MOMENT)


@dataclass
class World:
    """Remembers what it was asked for, and answers as a test wants."""

    answer: Callable[[], Done | None] = lambda: Done.DOWNLOADED
    seen: dict[str, datetime] = field(default_factory=dict)
    failed: list[Failed] = field(default_factory=list)
    carried_out: list[tuple[str, str | None]] = field(default_factory=list)

    def carry_out(self, announcement, accepted):
        self.carried_out.append((announcement.path, accepted.directory))
        return self.answer()

    def last_seen(self, key):
        return self.seen.get(key)

    def see(self, key, *, now):
        self.seen[key] = now

    def add(self, failed):
        self.failed.append(failed)


@pytest.fixture
def world() -> World:
    return World()


def received(announcement: Announcement = FILE, form: Format = Format.V03) -> Received:
    sent = payload(announcement, form)
    return Received(sent.body, dict(sent.headers), "xs_alice", "v03.a")


def subscriber(world: World, wanted: Filter | None = None, **limits) -> Subscriber:
    return Subscriber(world.carry_out, world, world, wanted or Filter(), Limits(**limits))


def failing(error: Exception):
    def answer():
        raise error

    return answer


@pytest.mark.parametrize("done", list(Done))
def test_a_message_ends_in_what_was_done(done, world):
    world.answer = lambda: done

    result = subscriber(world).handle(received(), now=MOMENT)

    assert (result.outcome.value, result.code) == (
        done.value,
        {Done.UNCHANGED: 304, Done.BLOCK: 206}.get(done, 201),
    )
    assert world.seen == {}


@pytest.mark.parametrize("form", list(Format))
def test_both_formats_are_understood(form, world):
    world.answer = lambda: None

    result = subscriber(world).handle(received(form=form), now=MOMENT)

    assert result.outcome == Outcome.ACCEPTED
    assert result.announcement == FILE


def test_a_body_that_looks_like_another_format_has_its_type_beside(world):
    """As sr3 posts through our driver; the header is not one of the announcement's."""
    sent = received()
    told = Received(f"      {sent.body}", {"content_type": "application/json"}, "xs_alice", "v03.a")

    assert subscriber(world).handle(told, now=MOMENT).announcement == FILE
    assert subscriber(world).handle(replace(told, headers={}), now=MOMENT).outcome == Outcome.INVALID


def test_a_result_is_told_as_json(world):
    told = subscriber(world).handle(received(), now=MOMENT).as_document()

    assert told["body"] == received().body
    assert {name: told[name] for name in ("outcome", "code", "url", "path", "reason", "attempts")} == {
        "outcome": "downloaded",
        "code": 201,
        "url": "https://e/a/f",
        "path": "a/f",
        "reason": None,
        "attempts": 1,
    }
    assert (told["exchange"], told["routing_key"], told["headers"]) == ("xs_alice", "v03.a", {})


def test_what_announces_nothing_is_invalid(world):
    result = subscriber(world).handle(Received("{}", {}, "x", "k"), now=MOMENT)

    assert (result.outcome, result.code) == (Outcome.INVALID, 417)
    assert result.reason == "pubTime: is missing; baseUrl: is missing; relPath: is missing"
    assert result.as_document()["url"] is None


def test_the_filter_says_what_is_wanted_and_where_it_goes(world):
    lines = [("reject", ".*gif"), ("directory", "d"), ("accept", ".*")]
    handle = subscriber(world, Filter.parse(lines, Compiled)).handle

    results = [handle(received(replace(FILE, path=path)), now=MOMENT) for path in ("a.gif", "a.txt")]

    assert [(one.outcome, one.reason) for one in results] == [
        (Outcome.REJECTED, "line 1: reject .*gif"),
        (Outcome.DOWNLOADED, ""),
    ]
    assert world.carried_out == [("a.txt", "d")]


@dataclass
class Compiled:
    text: str

    def matches(self, text):
        if self.text == "slow":
            raise RejectedError("pattern 'slow' took longer than 1 s")
        return re.match(self.text, text) is not None


def test_an_expression_that_takes_too_long_refuses_the_message(world):
    result = subscriber(world, Filter.parse([("accept", "slow")], Compiled)).handle(received(), now=MOMENT)

    assert (result.outcome, result.reason) == (Outcome.REFUSED, "pattern 'slow' took longer than 1 s")


@pytest.mark.parametrize(
    ("limits", "outcome"),
    [
        ({"message_age": timedelta(seconds=60)}, Outcome.MESSAGE_TOO_OLD),
        ({"file_age": timedelta(seconds=60)}, Outcome.FILE_TOO_OLD),
        ({"message_age": timedelta(seconds=61), "file_age": timedelta(seconds=61)}, Outcome.DOWNLOADED),
    ],
)
def test_what_is_too_old_is_dropped(limits, outcome, world):
    result = subscriber(world, **limits).handle(received(), now=MOMENT + timedelta(seconds=61))

    assert result.outcome == outcome


def test_a_file_without_a_time_is_never_too_old(world):
    result = subscriber(world, file_age=timedelta(0)).handle(received(replace(FILE, modified_at=None)), now=MOMENT)

    assert result.outcome == Outcome.DOWNLOADED


def test_a_stream_of_duplicates_keeps_being_dropped(world):
    handle = subscriber(world, duplicates_ttl=timedelta(seconds=10)).handle

    outcomes = [handle(received(), now=MOMENT + timedelta(seconds=after)).outcome for after in (0, 9, 18, 29)]

    assert outcomes == [Outcome.DOWNLOADED, Outcome.DUPLICATE, Outcome.DUPLICATE, Outcome.DOWNLOADED]


def test_what_was_interrupted_is_no_duplicate_when_it_comes_again(world):
    world.answer = failing(KeyboardInterrupt())
    one = subscriber(world, duplicates_ttl=timedelta(seconds=10))

    with pytest.raises(KeyboardInterrupt):
        one.handle(received(), now=MOMENT)
    world.answer = lambda: Done.DOWNLOADED

    assert one.handle(received(), now=MOMENT).outcome == Outcome.DOWNLOADED


def test_what_fails_is_tried_again_after_longer_and_longer_pauses_and_then_given_up(world):
    world.answer = failing(UnavailableError("no way"))
    one = subscriber(world, duplicates_ttl=timedelta(seconds=10), attempts=3, pause=timedelta(seconds=10))

    results = [one.handle(received(), now=MOMENT, earlier_attempts=number) for number in (0, 1, 2)]

    assert [(result.outcome, result.attempts) for result in results] == [
        (Outcome.FAILED, 1),
        (Outcome.FAILED, 2),
        (Outcome.GIVEN_UP, 3),
    ]
    assert {result.reason for result in results} == {"no way"}
    assert world.failed == [
        Failed(received(), 1, MOMENT + timedelta(seconds=10), "no way"),
        Failed(received(), 2, MOMENT + timedelta(seconds=30), "no way"),
    ]


def test_what_will_never_succeed_is_refused_at_once(world):
    world.answer = failing(RejectedError("leads out"))

    result = subscriber(world).handle(received(), now=MOMENT)

    assert (result.outcome, result.code, result.reason) == (Outcome.REFUSED, 422, "leads out")
    assert world.failed == []
