"""The lookup of events by id, in an index and raw files as their writers make them."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.aws.history import event_lookup
from signalbox.aws.history.event_lookup import S3EventLookup
from signalbox.aws.history.objects import HistoryObjects
from signalbox.errors import EffectFailed
from signalbox.history.ids import ids_of
from signalbox.history.index.days import DAYS_PREFIX
from signalbox.history.lookup import EventWindow
from tests.adapters.shared.stubs import StubbedClient, error
from tests.fakes.parquet import DAY, INDEXED_EVENTS, NOON, index_files, raw_file, sample_events

BUCKET = "history"
DAY_AFTER = NOON + timedelta(days=1)
WINDOW = EventWindow.before(DAY_AFTER, days=2)


def put(s3, files: dict[str, bytes]) -> None:
    for key, data in files.items():
        s3.put_object(Bucket=BUCKET, Key=key, Body=data)


def lookup(s3, now: datetime = DAY_AFTER) -> S3EventLookup:
    return S3EventLookup(s3, BUCKET, now)


def raw_key(moment: datetime, name: str = "1.parquet") -> str:
    return f"raw/dt={moment:%Y-%m-%d}/hour={moment:%H}/{name}"


def naming(ids: set[str], count: int = INDEXED_EVENTS) -> list:
    return [event for event in sample_events(count) if not ids_of(event).isdisjoint(ids)]


@pytest.mark.parametrize(
    "ids",
    [{"m401", "c401"}, {"p600"}, {"routed:m401:q_2:delivered"}, {"proxy_poll:h890:1"}, {"unknown", "routed:unknown:q"}],
    ids=["messages", "label", "event", "event-without-message", "unknown"],
)
def test_events_are_found_by_the_index_alone_when_its_hours_are_settled(s3, ids):
    put(s3, index_files())

    assert lookup(s3).events(ids, WINDOW) == naming(ids)


def test_a_stage_without_an_index_is_searched_in_its_raw_files(s3):
    put(s3, {raw_key(NOON): raw_file("duckdb-gzip"), raw_key(NOON, "2.parquet"): raw_file("duckdb-snappy")})
    found = lookup(s3, NOON + timedelta(minutes=10))

    assert found.events({"m004"}, WINDOW) == naming({"m004"})
    assert found.events({"c5"}, WINDOW) == naming({"c5"})


def test_the_next_ids_of_a_trace_are_looked_up_in_what_was_read(s3):
    put(s3, {**index_files(), raw_key(DAY_AFTER): raw_file("duckdb-gzip")})
    found = lookup(s3)
    found.events({"m004"}, WINDOW)
    before = found.usage

    assert found.events({"m005", "c5"}, WINDOW) == naming({"m005", "c5"})
    # Two blocks, one of which may be in the part that was read for the footer.
    assert found.usage.requests - before.requests <= 2


def test_what_is_not_kept_is_read_again(s3, monkeypatch):
    monkeypatch.setattr(event_lookup, "KEPT_BYTES", 0)
    put(s3, {raw_key(NOON): raw_file("duckdb-gzip")})
    found = lookup(s3)

    assert found.events({"m004"}, WINDOW) == found.events({"m004"}, WINDOW) == naming({"m004"})


def test_what_the_first_read_of_a_file_lacks_is_read_next(s3, monkeypatch):
    monkeypatch.setattr(event_lookup, "TAIL_BYTES", 100)
    put(s3, index_files())

    assert lookup(s3).events({"m401"}, WINDOW) == naming({"m401"}) != []


def test_a_bucket_of_ids_without_events_has_no_file(s3):
    segment = {"folder": f"{DAY}/ab", "ending": "", "files": [""]}
    document = {"version": 1, "segments": [segment], "read_at": {}}
    put(s3, {f"index/days/{DAY}.json": json.dumps(document).encode()})

    assert lookup(s3).events({"m401"}, WINDOW) == []


def test_an_event_in_the_index_and_in_a_raw_file_is_found_once(s3):
    put(s3, {**index_files(), raw_key(DAY_AFTER): raw_file("duckdb-gzip")})

    assert lookup(s3).events({"m004"}, WINDOW) == naming({"m004"})


def test_raw_files_that_compaction_has_read_are_not_read_again(s3):
    now = datetime.now(UTC)
    before = now - timedelta(hours=1)
    read_at = {f"{before:%H}": (now + timedelta(minutes=10)).isoformat(), f"{now:%H}": now.isoformat()}
    document = json.dumps({"version": 1, "segments": [], "read_at": read_at}).encode()
    put(s3, {f"index/days/{day:%Y-%m-%d}.json": document for day in (before, now)})
    put(s3, {raw_key(before): raw_file("duckdb-gzip"), raw_key(now, "new.parquet"): raw_file("spark-gzip")})
    found = lookup(s3, now)
    found.events({"none"}, EventWindow(before, now))

    # The file of this hour is newer than its last compaction.
    assert len(raw_file("spark-gzip")) <= found.usage.bytes < len(raw_file("spark-gzip")) + len(raw_file("duckdb-gzip"))


def test_events_outside_the_window_are_not_returned(s3):
    put(s3, index_files())
    (event,) = naming({"m401"})

    assert lookup(s3).events({"m401"}, EventWindow(NOON, event.occurred_at)) == []
    assert lookup(s3).events({"m401"}, EventWindow(event.occurred_at, DAY_AFTER)) == [event]


def test_a_file_that_expires_after_it_was_listed_has_no_events(s3):
    put(s3, {raw_key(NOON): raw_file("duckdb-gzip")})
    found = lookup(s3)
    hours = found.events({"none"}, WINDOW)
    found._raw.clear()
    s3.delete_object(Bucket=BUCKET, Key=raw_key(NOON))

    assert hours == found.events({"m004"}, WINDOW) == []


@pytest.mark.parametrize("data", [b"", b"PAR1", raw_file("duckdb-gzip")[:-100]], ids=["empty", "no-rows", "cut-off"])
@pytest.mark.parametrize("name", ["_SUCCESS", "damaged.parquet"])
def test_an_object_that_is_no_file_of_events_is_left_out_with_its_key(s3, name, data):
    put(s3, {raw_key(NOON): raw_file("duckdb-gzip"), raw_key(NOON, name): data})
    found = lookup(s3, NOON + timedelta(minutes=10))

    assert found.events({"m004"}, WINDOW) == naming({"m004"}) != []
    assert found.unreadable == [raw_key(NOON, name)]


def test_damaged_objects_of_the_index_are_left_out_and_raw_files_are_read_instead_of_a_document(s3):
    files = index_files()
    document, *data = sorted(files, key=lambda key: not key.endswith(f"{DAY}.json"))
    put(s3, {document: b'{"version": 9}', raw_key(NOON): raw_file("duckdb-gzip")})
    of_raw = lookup(s3)
    assert of_raw.events({"m004"}, WINDOW) == naming({"m004"}) != []
    assert of_raw.unreadable == [document]

    put(s3, {document: files[document], **dict.fromkeys(data, b"no Parquet")})
    of_index = lookup(s3)
    assert of_index.events({"m401"}, WINDOW) == []
    assert set(of_index.unreadable) <= set(data)
    assert of_index.unreadable


@pytest.mark.parametrize("times", [1, event_lookup.MAX_LISTS])
def test_documents_that_compaction_replaces_after_they_were_listed_are_listed_again(s3, monkeypatch, times):
    files = index_files()
    (old,) = [key for key in files if key.startswith(DAYS_PREFIX)]
    put(s3, files)
    find, left = HistoryObjects.find, [old, *(f"{DAYS_PREFIX}{DAY}-{number}.json" for number in range(times))]

    def replaced(self: HistoryObjects, key: str) -> bytes | None:
        if len(left) > 1:
            s3.delete_object(Bucket=BUCKET, Key=left.pop(0))
            put(s3, {left[0]: files[old]})
        return find(self, key)

    monkeypatch.setattr(HistoryObjects, "find", replaced)
    found = lookup(s3)
    if times == 1:
        assert found.events({"m401"}, WINDOW) == naming({"m401"})
    else:
        with pytest.raises(EffectFailed, match="compaction replaced documents"):
            found.events({"m401"}, WINDOW)


def test_a_bucket_that_cannot_be_read_raises(s3):
    with pytest.raises(EffectFailed, match="s3://missing/index/days/"):
        S3EventLookup(s3, "missing", DAY_AFTER).events({"m004"}, WINDOW)


def test_a_missing_file_of_the_index_raises(s3):
    files = index_files()
    put(s3, {key: data for key, data in files.items() if key.endswith(f"{DAY}.json")})

    with pytest.raises(EffectFailed, match="NoSuchKey"):
        lookup(s3).events({"m401"}, WINDOW)


def test_an_object_that_cannot_be_read_is_not_a_missing_one(s3) -> None:
    denied = StubbedClient(s3, "get_object", error("AccessDenied", "GetObject"))

    with pytest.raises(EffectFailed, match="AccessDenied"):
        HistoryObjects(denied, BUCKET).find("index/1")
