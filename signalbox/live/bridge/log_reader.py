"""The reader of one running container's log: a list of its files, and of each that has grown the new bytes."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Protocol

from signalbox.errors import UnavailableError
from signalbox.live.bridge.log_positions import LogPosition
from signalbox.live.bridge.log_text import Piece, pieces
from signalbox.live.bridge.topics import log_topic

READ_BYTES = 1_000_000
# With the list, four requests in a second.
READS_PER_POLL = 3
SHORTEST_SECONDS, LONGEST_SECONDS, GROWTH = 1.0, 5.0, 1.5
MAXIMUM_FILES = 30
# Others are no logs: users may add files to the collection of their request, whose names would be no words of a topic.
_LOG_FILE = re.compile(r"([A-Za-z0-9_-]{1,40})\.(?:txt|json)")
# Polls after which the log of a container that has ended is gone: its collection was trashed or deleted.
TRIES_AT_END = 5


class LogsUnavailable(UnavailableError):
    """Raised when the log endpoint does not answer, or a container's node cannot be reached."""


class LogAbsent(LogsUnavailable):
    """Raised when a container has no log: it has not begun, or its log was trashed, or it may not be read."""


class LogFiles(Protocol):
    """The log endpoint of a cluster; each method raises `LogsUnavailable`."""

    def sizes(self, request: str, container: str) -> Mapping[str, int]:
        """Return the sizes of a container's log files by name. Raises `LogAbsent`."""

    def read(self, request: str, container: str, name: str, *, begin: int, limit: int) -> bytes:
        """Return at most `limit` bytes of a file from a place on."""


class LogSink(Protocol):
    """The realm, which accepts the same part of a topic once in five minutes. Raises `UnavailableError`."""

    def publish_log(self, publication: "LogPublication") -> None:
        """Publish a part of a log."""


@dataclass(frozen=True, slots=True)
class LogPublication:
    """A part of a container's log file under its topic."""

    topic: str
    piece: Piece

    @property
    def body(self) -> str:
        """Return the text as JSON, so that a line is never taken for another value."""
        return json.dumps(self.piece.text)


@dataclass(slots=True)
class LogStatistics:
    """What a reader has done: requests for logs, publications, and what these left out."""

    requests: int = 0
    published: int = 0
    omitted_lines: int = 0
    replaced: int = 0
    cut_back: int = 0
    absent: int = 0

    def add(self, other: "LogStatistics") -> "LogStatistics":
        """Return the sum of two readers' statistics."""
        return LogStatistics(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class _LogFile:
    """A listed file with its topics."""

    name: str
    size: int
    topics: Sequence[str]


@dataclass(slots=True)
class ContainerReader:
    """The only reader of a container's log; `poll` is due at `due_at` of a monotonic clock.

    `is_over` says that the container has ended: its log is then read to its end, with the last line.
    """

    position: LogPosition
    files: LogFiles
    sink: LogSink
    statistics: LogStatistics = field(default_factory=LogStatistics)
    is_over: bool = False
    due_at: float = 0.0
    _interval: float = SHORTEST_SECONDS
    _sizes: dict[str, int] = field(default_factory=dict)
    _last: str = ""
    _absences: int = 0

    def poll(self, monotonic: float) -> None:
        """Publish the new text. Raises `UnavailableError` if a publication's outcome is unknown."""
        before, was_over = self.statistics.published, self.is_over
        try:
            is_read = self._read_all(is_over=was_over)
        except LogAbsent:
            is_read = self._is_lost(is_over=was_over)
        except LogsUnavailable:
            is_read = False
        if is_read and was_over:
            self.position.is_read = True
        has_lines = self.statistics.published > before
        self._interval = SHORTEST_SECONDS if has_lines else min(self._interval * GROWTH, LONGEST_SECONDS)
        self.due_at = monotonic + self._interval

    def _read_all(self, *, is_over: bool) -> bool:
        """Read the files that have grown, as many as a poll may; return whether nothing is left."""
        position = self.position
        self.statistics.requests += 1
        listed = self.files.sizes(position.request, position.container)
        files = [_LogFile(name, listed[name], self._topics(name)) for name in _log_files(listed)]
        self._absences = 0
        self._note_cut_back(files, is_over=is_over)
        due = [one for one in files if self._is_due(one, is_over=is_over)]
        for one in sorted(due, key=lambda one: (one.name <= self._last, one.name))[:READS_PER_POLL]:
            self._read(one, is_over=is_over)
            self._last = one.name
        return not any(self._is_due(one, is_over=is_over) for one in files)

    def _is_due(self, one: _LogFile, *, is_over: bool) -> bool:
        more = [topic for topic in one.topics if self._offset(topic) < one.size]
        return any(is_over or self._sizes.get(topic) != one.size for topic in more)

    def _read(self, one: _LogFile, *, is_over: bool) -> None:
        position = self.position
        begin = min(map(self._offset, one.topics))
        self.statistics.requests += 1
        data = self.files.read(position.request, position.container, one.name, begin=begin, limit=READ_BYTES)
        end = begin + len(data)
        for topic in one.topics:
            self._sizes[topic] = end if len(data) == READ_BYTES else max(end, one.size)
            at = self._offset(topic)
            for piece in pieces(_stem(one.name), data[at - begin :], at, is_over=is_over and end >= one.size):
                self._publish(topic, piece)

    def _note_cut_back(self, files: Sequence[_LogFile], *, is_over: bool) -> None:
        """Publish for each file that has become shorter that this is so; what was published may be the only copy."""
        present = {topic: one.size for one in files for topic in one.topics}
        of_readers = self.position.prefixes()
        published = [one for one in self.position.offsets.items() if one[0].startswith(of_readers)]
        for topic, offset in published:
            size = present.get(topic, 0 if is_over else offset)
            if size < offset:
                self.statistics.cut_back += 1
                self._publish(topic, Piece(size, size, cut_back_from=offset))

    def _publish(self, topic: str, piece: Piece) -> None:
        if piece.is_visible:
            self.sink.publish_log(LogPublication(topic, piece))
            self.statistics.published += 1
        self.statistics.omitted_lines += piece.omitted_lines
        self.statistics.replaced += piece.replaced
        self.position.offsets[topic] = piece.end

    def _is_lost(self, *, is_over: bool) -> bool:
        """Return whether the log of a container that has ended was absent too often."""
        self._absences += is_over
        self.statistics.absent += self._absences == TRIES_AT_END
        return self._absences >= TRIES_AT_END

    def _topics(self, name: str) -> Sequence[str]:
        return [log_topic(owner, self.position.container, _stem(name)) for owner in self.position.owners]

    def _offset(self, topic: str) -> int:
        return self.position.offsets.get(topic, 0)


def _log_files(names: Iterable[str]) -> Sequence[str]:
    """Return the names of logs in order, one for each topic."""
    by_stem: dict[str, str] = {}
    for name in sorted(filter(_LOG_FILE.fullmatch, names)):
        by_stem.setdefault(_stem(name), name)
    return list(by_stem.values())[:MAXIMUM_FILES]


def _stem(name: str) -> str:
    return name.rpartition(".")[0]
