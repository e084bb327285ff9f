"""Handling of received announcements."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.clients.sarracenia.downloader import DownloadOutcome
from signalbox.clients.sarracenia.subscriber import AnnouncedMessage, FailedMessage, MessageOutcome, Subscriber
from signalbox.errors import RejectedError, UnavailableError
from signalbox.sarracenia.formats.announcement import Announcement
from signalbox.sarracenia.formats.identity import Identity
from signalbox.sarracenia.formats.payloads import Format, payload
from signalbox.sarracenia.subscription.filters import FileFilter
from signalbox.sarracenia.subscription.limits import Limits

MOMENT = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
FILE = Announcement(MOMENT, "https://e/", "a/f", identity=Identity("md5", "AA=="), modified_at=MOMENT)


@dataclass
class FakePorts:
    """The subscriber's action and stores: records calls, and returns the results that a test sets."""

    answer: Callable[[], DownloadOutcome | None] = lambda: DownloadOutcome.DOWNLOADED
    seen: dict[str, datetime] = field(default_factory=dict)
    failed: list[FailedMessage] = field(default_factory=list)
    applied: list[tuple[str, str | None]] = field(default_factory=list)

    def apply(self, announcement, accepted):
        self.applied.append((announcement.path, accepted.directory))
        return self.answer()

    def last_seen(self, key):
        return self.seen.get(key)

    def record(self, key, *, now):
        self.seen[key] = now

    def add(self, failed):
        self.failed.append(failed)


@pytest.fixture
def ports() -> FakePorts:
    return FakePorts()


def received(announcement: Announcement = FILE, form: Format = Format.V03) -> AnnouncedMessage:
    sent = payload(announcement, form)
    return AnnouncedMessage(sent.body, dict(sent.headers), "xs_alice", "v03.a")


def subscriber(ports: FakePorts, file_filter: FileFilter | None = None, **limits) -> Subscriber:
    return Subscriber(ports.apply, ports, ports, file_filter or FileFilter(), Limits(**limits))


def failing(error: Exception):
    def answer():
        raise error

    return answer


@pytest.mark.parametrize("outcome", list(DownloadOutcome))
def test_the_outcome_is_that_of_the_action(outcome, ports):
    ports.answer = lambda: outcome

    result = subscriber(ports).handle(received(), now=MOMENT)

    assert (result.outcome.value, result.code) == (
        outcome.value,
        {DownloadOutcome.UNCHANGED: 304, DownloadOutcome.BLOCK: 206}.get(outcome, 201),
    )
    assert ports.seen == {}


@pytest.mark.parametrize("form", list(Format))
def test_both_formats_are_accepted(form, ports):
    ports.answer = lambda: None

    result = subscriber(ports).handle(received(form=form), now=MOMENT)

    assert result.outcome == MessageOutcome.ACCEPTED
    assert result.announcement == FILE


def test_a_content_type_header_overrides_the_format_of_the_body(ports):
    """sr3 posts such messages through our driver; the header is not a part of the announcement."""
    sent = received()
    message = AnnouncedMessage(f"      {sent.body}", {"content_type": "application/json"}, "xs_alice", "v03.a")

    assert subscriber(ports).handle(message, now=MOMENT).announcement == FILE
    assert subscriber(ports).handle(replace(message, headers={}), now=MOMENT).outcome == MessageOutcome.INVALID


def test_a_result_has_a_json_document(ports):
    document = subscriber(ports).handle(received(), now=MOMENT).as_document()

    assert document["body"] == received().body
    assert {name: document[name] for name in ("outcome", "code", "url", "path", "reason", "attempts")} == {
        "outcome": "downloaded",
        "code": 201,
        "url": "https://e/a/f",
        "path": "a/f",
        "reason": None,
        "attempts": 1,
    }
    assert (document["exchange"], document["routing_key"], document["headers"]) == ("xs_alice", "v03.a", {})


def test_a_message_that_is_not_an_announcement_is_invalid(ports):
    result = subscriber(ports).handle(AnnouncedMessage("{}", {}, "x", "k"), now=MOMENT)

    assert (result.outcome, result.code) == (MessageOutcome.INVALID, 417)
    assert result.reason == "pubTime: is missing; baseUrl: is missing; relPath: is missing"
    assert result.as_document()["url"] is None


def test_the_filter_decides_on_acceptance_and_directory(ports):
    lines = [("reject", ".*gif"), ("directory", "d"), ("accept", ".*")]
    handle = subscriber(ports, FileFilter.parse(lines, Compiled)).handle

    results = [handle(received(replace(FILE, path=path)), now=MOMENT) for path in ("a.gif", "a.txt")]

    assert [(one.outcome, one.reason) for one in results] == [
        (MessageOutcome.REJECTED, "line 1: reject .*gif"),
        (MessageOutcome.DOWNLOADED, ""),
    ]
    assert ports.applied == [("a.txt", "d")]


@dataclass
class Compiled:
    text: str

    def matches(self, text):
        if self.text == "slow":
            raise RejectedError("pattern 'slow' took longer than 1 s")
        return re.match(self.text, text) is not None


def test_an_expression_that_takes_too_long_refuses_the_message(ports):
    result = subscriber(ports, FileFilter.parse([("accept", "slow")], Compiled)).handle(received(), now=MOMENT)

    assert (result.outcome, result.reason) == (MessageOutcome.REFUSED, "pattern 'slow' took longer than 1 s")


@pytest.mark.parametrize(
    ("limits", "outcome"),
    [
        ({"message_age": timedelta(seconds=60)}, MessageOutcome.MESSAGE_TOO_OLD),
        ({"file_age": timedelta(seconds=60)}, MessageOutcome.FILE_TOO_OLD),
        ({"message_age": timedelta(seconds=61), "file_age": timedelta(seconds=61)}, MessageOutcome.DOWNLOADED),
    ],
)
def test_old_messages_and_files_are_dropped(limits, outcome, ports):
    result = subscriber(ports, **limits).handle(received(), now=MOMENT + timedelta(seconds=61))

    assert result.outcome == outcome


def test_a_file_without_a_time_is_never_too_old(ports):
    result = subscriber(ports, file_age=timedelta(0)).handle(received(replace(FILE, modified_at=None)), now=MOMENT)

    assert result.outcome == MessageOutcome.DOWNLOADED


def test_a_stream_of_duplicates_keeps_being_dropped(ports):
    handle = subscriber(ports, duplicates_ttl=timedelta(seconds=10)).handle

    outcomes = [handle(received(), now=MOMENT + timedelta(seconds=after)).outcome for after in (0, 9, 18, 29)]

    assert outcomes == [
        MessageOutcome.DOWNLOADED,
        MessageOutcome.DUPLICATE,
        MessageOutcome.DUPLICATE,
        MessageOutcome.DOWNLOADED,
    ]


def test_an_interrupted_message_is_not_a_duplicate_when_it_is_redelivered(ports):
    ports.answer = failing(KeyboardInterrupt())
    one = subscriber(ports, duplicates_ttl=timedelta(seconds=10))

    with pytest.raises(KeyboardInterrupt):
        one.handle(received(), now=MOMENT)
    ports.answer = lambda: DownloadOutcome.DOWNLOADED

    assert one.handle(received(), now=MOMENT).outcome == MessageOutcome.DOWNLOADED


def test_a_failing_message_is_retried_after_growing_pauses_and_then_given_up(ports):
    ports.answer = failing(UnavailableError("no way"))
    one = subscriber(ports, duplicates_ttl=timedelta(seconds=10), attempts=3, pause=timedelta(seconds=10))

    results = [one.handle(received(), now=MOMENT, earlier_attempts=number) for number in (0, 1, 2)]

    assert [(result.outcome, result.attempts) for result in results] == [
        (MessageOutcome.FAILED, 1),
        (MessageOutcome.FAILED, 2),
        (MessageOutcome.GIVEN_UP, 3),
    ]
    assert {result.reason for result in results} == {"no way"}
    assert ports.failed == [
        FailedMessage(received(), 1, MOMENT + timedelta(seconds=10), "no way"),
        FailedMessage(received(), 2, MOMENT + timedelta(seconds=30), "no way"),
    ]


def test_a_permanent_failure_is_refused_at_once(ports):
    ports.answer = failing(RejectedError("leads out"))

    result = subscriber(ports).handle(received(), now=MOMENT)

    assert (result.outcome, result.code, result.reason) == (MessageOutcome.REFUSED, 422, "leads out")
    assert ports.failed == []
