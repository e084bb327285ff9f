"""The history of rendezvous: Parquet without addresses and session descriptions, and the day's report."""

import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from signalbox.aws.history.event_lookup import S3EventLookup
from signalbox.clients.rendezvous.client import new_client_id
from signalbox.clients.rendezvous.simulator import CLIENT_ADDRESS, PROXY_ADDRESS, sample_offer
from signalbox.history.event import HistoryEvent
from signalbox.history.lookup import EventWindow
from signalbox.local.emulator.lifecycle import Credentials
from signalbox.local.emulator.program import PYTHON
from signalbox.local.spark import jobs
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body
from tests.integration.rendezvous.peers import DENIED, HTTP_PATIENCE_SECONDS, TIMED_OUT, Parties
from tests.patience import wait_for

pytestmark = pytest.mark.emulator

# Public addresses, because the broker uses the left-most public address as the proxy's.
VOLUNTEERS = ("9.9.9.9", "1.1.1.1", "4.4.4.4")
# The first line of a session description with its end, plain and in JSON: shorter texts occur in any Parquet file.
SESSION = ("v=0\r\n", r"v=0\r\n")
SECRETS = (*VOLUNTEERS, CLIENT_ADDRESS, PROXY_ADDRESS, "2001:db8::10", "127.0.0.1", "a=candidate", *SESSION, "ufrag")
# The emulator's DuckDB reads Firehose's files together, and the jobs' files one by one, as their columns differ.
READ = """
import duckdb, glob, json, sys
def readable(table):  # times with a zone need a package that the emulator lacks
    zoned = {name for name, kind in zip(table.columns, table.types) if "ZONE" in str(kind)}
    return table.project(", ".join(f'"{name}"' + "::VARCHAR" * (name in zoned) for name in table.columns))
tables = [duckdb.read_parquet(path, hive_partitioning=False) for path in sorted(glob.glob(sys.argv[1]))]
types = dict(zip(tables[0].columns, map(str, tables[0].types)))
rows = [dict(zip(table.columns, row)) for table in tables for row in readable(table).fetchall()]
json.dump({"types": types, "rows": rows}, sys.stdout, default=str)
"""
SENT = Counter(
    {
        ("proxy_poll", "matched", "proxy"): 2,
        ("proxy_poll", "relay_rejected", "proxy"): 1,
        ("bad_input", "rejected", "proxy"): 1,
        ("bad_input", "rejected", "http"): 1,
        ("proxy_answer", "success", "proxy"): 1,
        ("proxy_answer", "client_gone", "proxy"): 1,
        ("answer", "delivered", "sqs"): 1,
        ("offer", "parked", "sqs"): 1,
        ("offer", "rejected", "sqs"): 1,
        ("offer", "denied", "sqs"): 2,
        ("offer", "denied", "http"): 1,
        ("timeout", "expired", "http"): 1,
        ("dead_letter", "dead", "sqs"): 1,
    }
)
REPORT = Path(__file__).with_name("rendezvous_block.txt").read_text()


@dataclass(frozen=True, slots=True)
class Lake:
    """The history bucket of the stage."""

    parties: Parties
    s3: Any

    @property
    def bucket(self) -> str:
        return self.parties.deployment.outputs["HistoryBucket"]

    def keys(self) -> set[str]:
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        return {item["Key"] for page in pages for item in page.get("Contents", [])}

    def content(self, key: str) -> bytes:
        return bytes(self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read())


@pytest.fixture(scope="module")
def lake(all_parties: Parties) -> Lake:
    return Lake(all_parties, all_parties.deployment.session().client("s3"))


@pytest.fixture(scope="module")
def written(lake: Lake) -> set[str]:
    """The objects of all events of `SENT`, within one day."""
    keys: set[str] = set()
    while len({key.split("/")[1] for key in keys}) != 1:  # repeated if midnight passed
        before = _settled(lake)
        _send(lake.parties)
        keys = {key for key in _settled(lake) - before if key.startswith("raw/")}
    return keys


@pytest.fixture(scope="module")
def read(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return the types and rows of Parquet objects."""

    def rows_of(keys: set[str]) -> dict[str, Any]:
        folder = tmp_path_factory.mktemp("parquet")
        for number, key in enumerate(sorted(keys)):
            (folder / f"{number}.parquet").write_bytes(lake.content(key))
        return _read(folder)

    return rows_of


def _read(folder: Path) -> dict[str, Any]:
    done = subprocess.run([PYTHON, "-c", READ, f"{folder}/*.parquet"], capture_output=True, text=True, check=True)  # noqa: S603 - ours
    return dict(json.loads(done.stdout))


def _settled(lake: Lake) -> set[str]:
    """Return the objects when no event waits and no object was added for `QUIET_SECONDS`."""
    lake.parties.wait_until_nothing_waits()
    seen, since = lake.keys(), time.monotonic()

    def quiet() -> bool:
        nonlocal seen, since
        if (now := lake.keys()) != seen:
            seen, since = now, time.monotonic()
        return time.monotonic() - since > QUIET_SECONDS

    wait_for(quiet, "the last object written", seconds=20 * QUIET_SECONDS)
    return seen


QUIET_SECONDS = 6.0  # the emulator's Firehose buffers records for three seconds


def _send(parties: Parties) -> None:
    """Make the calls of `SENT`."""
    parties.forget_polls()
    first, second, third = VOLUNTEERS
    for nat in (Nat.RESTRICTED, Nat.UNKNOWN):
        assert parties.reply(parties.ask(nat).client_id) == DENIED
    assert parties.http("POST", "client", offer_body(sample_offer("denied"), "restricted")).body == DENIED

    proxy = parties.wait(parties.proxy(Nat.RESTRICTED, comes_from=first))
    asked = parties.ask(Nat.UNRESTRICTED)
    assert parties.reply(asked.client_id) == asked.answer
    assert proxy.served.result().accepted
    assert parties.proxy().answer(proxy.sid, offer=asked.offer) is False

    parties.expect_proxies(Nat.UNRESTRICTED)
    waiting = parties.pool.submit(parties.http, "POST", "client", offer_body(sample_offer("silent"), "restricted"))
    wait_for(parties.open_offers, "the offer parked")
    parties.proxy(is_silent=True, proxy_type="webext", comes_from=second).serve_once()
    assert waiting.result(4 * HTTP_PATIENCE_SECONDS).body == TIMED_OUT

    assert not parties.proxy(relay_pattern=None, comes_from=third).serve_once().response.is_match
    assert parties.http("POST", "proxy", "a=candidate").status == 400
    assert "error" in parties.http("POST", "client", "1.0\n{}").body
    parties.send("1.0\n{}", client_id=new_client_id())
    parties.dead_letter(parties.send("a=candidate", client_id="not a queue name"))


def test_every_event_is_in_the_lake_once_with_the_columns_of_the_table(written: set[str], read):
    found = read(written)

    # The sweep's schedule is independent of the test, and so is how often a proxy polls before there is an offer.
    of_rendezvous = [row for row in found["rows"] if row["kind"] != "queue" and row["outcome"] != "idle"]
    assert Counter((row["kind"], row["outcome"], row["source"]) for row in of_rendezvous) == SENT
    assert list(found["types"]) == ["version", *(f.name for f in fields(HistoryEvent))]
    assert found["types"]["occurred_at"].startswith("TIMESTAMP")
    assert found["types"]["labels"].replace(" ", "") == "MAP(VARCHAR,VARCHAR)"
    assert {row["version"] for row in found["rows"]} == {1}
    ago = datetime.now(UTC).replace(tzinfo=None) - timedelta(hours=1)
    assert all(datetime.fromisoformat(row["occurred_at"]) > ago for row in found["rows"])


def test_an_answer_has_its_latency_and_its_proxy(written: set[str], read):
    (row,) = (row for row in read(written)["rows"] if row["kind"] == "answer")

    assert 0 < row["latency_ms"] < 30_000
    assert row["attempt"] == 1
    assert row["labels"] == {"nat": "unrestricted", "country": "??", "proxy_type": "standalone"}


def test_no_object_of_the_bucket_contains_an_address_or_a_session_description(lake: Lake, written: set[str], read):
    """Checks all objects that the stage has written so far, not only this test's."""
    keys = lake.keys()
    assert written <= keys
    assert not {key for key in keys if key.startswith("errors/")}

    texts = [json.dumps(read({key for key in keys if key.endswith(".parquet")}))]
    texts += [lake.content(key).decode(errors="replace") for key in keys]

    assert [secret for secret in SECRETS if any(secret in text for text in texts)] == []


@pytest.mark.release
def test_the_glue_job_counts_what_was_sent_and_indexes_it_by_id(lake: Lake, written: set[str], read):
    """Runs on a copy of these objects only: the shared stage has more."""
    bucket = f"history-of-{len(written)}-objects"
    lake.s3.create_bucket(Bucket=bucket)
    for key in written:
        lake.s3.copy_object(Bucket=bucket, Key=key, CopySource={"Bucket": lake.bucket, "Key": key})
    day = next(iter(written)).split("/")[1].removeprefix("dt=")
    (client,) = (row["message_id"] for row in read(written)["rows"] if row["kind"] == "answer")
    from_raw_files = _lookup(lake, bucket, client)

    _run_report(lake.parties, bucket, day=day)

    report = lake.s3.get_object(Bucket=bucket, Key=f"report/text/day={day}.txt")["Body"].read().decode()
    end = datetime.fromisoformat(day) + timedelta(days=1)
    assert report == f"snowflake-stats-end {end} (86400 s)\n{REPORT}"
    for key in written:
        lake.s3.delete_object(Bucket=bucket, Key=key)
    assert {"offer", "answer"} <= {event.kind for event in from_raw_files}
    assert _lookup(lake, bucket, client) == from_raw_files


def _lookup(lake: Lake, bucket: str, client: str) -> list[HistoryEvent]:
    now = datetime.now(UTC)
    return S3EventLookup(lake.s3, bucket, now).events({client}, EventWindow.before(now))


def _run_report(parties: Parties, bucket: str, *, day: str) -> None:
    said: list[str] = []
    table = {"database": bucket.replace("-", "_"), "day": day}
    location, index = f"s3://{bucket}/tables", {"index_path": f"s3://{bucket}/index"}
    glue = parties.deployment.session().client("glue")
    glue.create_database(DatabaseInput={"Name": table["database"], "LocationUri": location})
    jobs.run_jobs(
        [
            ("compact_history", table | {"history_path": f"s3://{bucket}/raw", **index, "maintain": "no"}),
            ("rendezvous_report", table | {"report_path": f"s3://{bucket}/report"}),
        ],
        endpoint_url=str(parties.deployment.endpoint_url),
        credentials=Credentials(**parties.deployment.administrator),
        region=parties.deployment.region,
        on_line=said.append,
    )
