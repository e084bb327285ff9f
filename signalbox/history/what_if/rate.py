"""The rate of past messages, and its chart in characters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import groupby

from signalbox.history.what_if.window import Bucket, PastWindow

LEVELS = " ▁▂▃▄▅▆▇█"
NONE = "·"
WHOLE = 10  # from here on a mean has no decimals
IN_A_ROW = {Bucket.MINUTE: ("%Y-%m-%d %H:00", 60), Bucket.HOUR: ("%Y-%m-%d", 24)}


@dataclass(frozen=True, slots=True)
class Rate:
    """The messages of a window by minutes or hours: the most in one, the mean of all, and how many have none."""

    peak: int
    peak_at: datetime | None
    mean: float
    empty: int
    number: int
    word: str

    @classmethod
    def of(cls, buckets: Mapping[datetime, int], window: PastWindow) -> "Rate":
        """Return the rate of messages; `buckets` may omit those without messages."""
        begins = list(window.buckets())
        peak_at = max(buckets, key=lambda begin: (buckets[begin], -begin.timestamp()), default=None)
        peak = 0 if peak_at is None else buckets[peak_at]
        mean = sum(buckets.values()) / (window.length / window.bucket.length)
        empty = sum(1 for begin in begins if not buckets.get(begin))
        return cls(peak, peak_at, mean, empty, len(begins), window.bucket.word)

    def document(self) -> dict[str, object]:
        """Return the rate as a JSON object."""
        at = None if self.peak_at is None else self.peak_at.isoformat()
        return {"per": self.word, "peak": self.peak, "peak_at": at, "mean": round(self.mean, 2)}

    def sentence(self, zone: tzinfo) -> str:
        """Return the rate in words, which also replace the chart for readers who do not see it."""
        if self.peak_at is None:
            return f"none in {_many(self.number, self.word)}"
        at = f"{self.peak_at.astimezone(zone):%Y-%m-%d %H:%M}"
        mean = f"{self.mean:,.0f}" if self.mean >= WHOLE else f"{self.mean:.2g}"
        article = "an" if self.word == Bucket.HOUR.word else "a"
        found = f"at most {self.peak:,} {article} {self.word} ({at}), {mean} on average"
        return f"{found}, none in {self.empty:,} of {_many(self.number, self.word)}"


def chart(buckets: Mapping[datetime, int], window: PastWindow, zone: tzinfo) -> Iterator[str]:
    """Yield the lines of a chart: a row for each day of hours or hour of minutes, a column for each bucket."""
    highest = max(buckets.values(), default=0) or 1
    title, width = IN_A_ROW[window.bucket]
    for name, begins in groupby(window.buckets(), key=lambda begin: begin.astimezone(zone).strftime(title)):
        cells = [" "] * width
        total = 0
        for begin in begins:
            number = buckets.get(begin, 0)
            total += number
            local = begin.astimezone(zone)
            cells[local.minute if window.bucket is Bucket.MINUTE else local.hour] = _level(number, highest)
        yield f"{name}  {''.join(cells)}  {total:,}"


def _level(number: int, highest: int) -> str:
    if not number:
        return NONE
    # Any message is at least the lowest block.
    return LEVELS[max(1, round(number / highest * (len(LEVELS) - 1)))]


def _many(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
