"""The limit of what a publisher writes to the logs of topics, which share a table with the sessions of all realms."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from signalbox.exchange.messages.publications import Publication
from signalbox.exchange.routing.ports import REFUSED_FOR
from signalbox.live.router.decoding import omitted_bytes, publication_metadata
from signalbox.live.wamp import codec
from signalbox.messages import MessageId, size_bytes

PERIOD_SECONDS = REFUSED_FOR.seconds
# 1,500 a second: two units each in a transaction. DynamoDB takes 4,000 a second from a new table, and 1,000 from the
# partition of all retained events of a realm, whose events count six times: a publisher may use half of it.
MAXIMUM_KILOBYTES, RETAINED = 1_500 * PERIOD_SECONDS, 6
COUNTED_FROM = 125  # KB of a publisher that a function instance counts together, with one write
KNOWN_PUBLISHERS = 10_000


class KilobyteCounter(Protocol):
    """The KB of each publisher in the current period, of all function instances."""

    def add(self, publisher: str, kilobytes: int, *, period: int, most: int) -> bool:
        """Add to the KB of a period unless they would exceed `most`; return whether they were added."""


@dataclass(slots=True)
class PublisherLimits:
    """What publishers may still write, as far as a function instance knows. Not thread-safe."""

    counter: KilobyteCounter
    now: Callable[[], datetime]
    _uncounted: dict[str, int] = field(default_factory=dict)
    _refused: dict[str, int] = field(default_factory=dict)  # the period in which a publisher had none left

    def refused(self, publications: Sequence[Publication]) -> Collection[MessageId]:
        """Count publications that are to be logged; return those of the publishers that have none left."""
        written: Counter[str] = Counter()
        for one in publications:
            written[one.publisher] += _kilobytes(one)
        period = int(self.now().timestamp()) // PERIOD_SECONDS
        refused = {publisher for publisher in written if not self._admits(publisher, written[publisher], period)}
        return {one.message.message_id for one in publications if one.publisher in refused}

    def _admits(self, publisher: str, kilobytes: int, period: int) -> bool:
        if self._refused.get(publisher) == period:
            return False
        for known in (self._uncounted, self._refused):
            if len(known) >= KNOWN_PUBLISHERS:
                known.clear()
        uncounted = self._uncounted.pop(publisher, 0) + kilobytes
        if uncounted < COUNTED_FROM:
            self._uncounted[publisher] = uncounted
        elif not self.counter.add(publisher, uncounted, period=period, most=MAXIMUM_KILOBYTES):
            self._refused[publisher] = period
            return False
        return True


def _kilobytes(publication: Publication) -> int:
    # Without its payload, an event has the audience that a session noted.
    is_whole = omitted_bytes(publication) is None
    size = size_bytes(publication.message) if is_whole else codec.size_bytes(publication.notes or "")
    return (1 + size // 1_024) * (RETAINED if publication_metadata(publication).is_retained else 1)
