"""Parquet files of the history, as each writer makes them, for tests without the writers; `make.py` made them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from signalbox.history.event import HistoryEvent

HERE = Path(__file__).parent
RAW_FILES = ("duckdb-gzip", "duckdb-snappy", "duckdb-uncompressed", "spark-gzip", "spark-snappy")
"""The raw files: those of the emulator's Firehose (DuckDB), and of Hive's library for Parquet (Spark), as on AWS."""
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = NOON.date()
EVENTS, INDEXED_EVENTS = 300, 900
INCOMPLETE_ROW = {"message_id": "m004"}
"""The last row of each raw file, which is no event."""


def raw_file(name: str) -> bytes:
    """Return a raw file with `sample_events`."""
    return (HERE / f"{name}.parquet").read_bytes()


def sample_events(count: int = EVENTS) -> list[HistoryEvent]:
    """Return events with nulls in each field that may be null, empty labels, and labels that link."""
    return [_sample(number) for number in range(count)]


def _sample(number: int) -> HistoryEvent:
    message_id = f"m{number:03}"
    is_polled = number % 10 == 0
    return HistoryEvent(
        f"proxy_poll:h{number}:1" if is_polled else f"routed:{message_id}:q_{number % 3}:delivered",
        NOON + timedelta(milliseconds=1001 * number),
        "rendezvous" if is_polled else "exchange",
        "proxy_poll" if is_polled else "routed",
        "matched" if is_polled else "delivered",
        reason="grüße, 'quoted'" if number % 50 == 1 else None,
        message_id=None if is_polled else message_id,
        topic=f"shop.{number % 5}.orders",
        sequence=None if number % 7 == 0 else 2**40 + number,
        destination=f"q_{number % 3}",
        size_bytes=number,
        latency_ms=-1 if number == 5 else number % 11,
        attempt=1,
        labels=_labels(number),
    )


def _labels(number: int) -> dict[str, str]:
    if number % 3 == 1:
        return {}
    return {"copy": f"c{number}", "publisher": "alice"} if number % 3 else {"publications": f"p{number},p{number + 1}"}


def index_files() -> dict[str, bytes]:
    """Return the files of an index of a day with `sample_events(INDEXED_EVENTS)` by object key."""
    found = sorted(path for path in (HERE / "index").rglob("*") if path.is_file())
    return {path.relative_to(HERE).as_posix(): path.read_bytes() for path in found}
