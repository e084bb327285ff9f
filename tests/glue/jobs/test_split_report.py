"""The job `split_report`, from the command line to its files."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from glue_jobs.shared.lake import Lake
from glue_jobs.split_report import main
from glue_jobs.transforms.events import SCHEMA
from signalbox.history.event import HistoryEvent
from signalbox.messages import Message
from signalbox.splitting.model import events
from signalbox.splitting.model.claims import Decision, FilterOutcome, Mode, SessionVerdict
from signalbox.splitting.model.split import Stage
from tests.unit.splitting.control.observed_states import ANN, BOB, MEMES, session, split

pytestmark = [pytest.mark.spark, pytest.mark.release]

DAY = "2026-11-21"
NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
SPLIT = split(Stage.SPLIT, session(started_at=NOON - timedelta(seconds=4)), session(BOB))
STOLEN = Decision(ANN, (BOB,), (SessionVerdict(ANN, Mode.STEAL, FilterOutcome.MATCH, "jq_filter: says true"),))
# Counted by hand from `day`.
TEXT = """\
split-report-end 2026-11-22 00:00:00 (86400 s)
routed session=1 deployed=2 copied=1
returned session=0 deployed=1 original=0
dead_letters dead=1
sessions started=0 ready=1 ended=0
time-to-route-ms p50=200 p95=290 p99=298
time-to-ready-ms p50=4000 p95=4000 p99=4000

queue memes
  dead 1: InvalidMessageContents
  returned by ann to deployed 1
  routed to deployed 2
  routed to ann 1
  copied to bob 1
  time-to-route-ms p50=200 p95=290 p99=298
"""


def message(name: str, *, milliseconds_ago: int = 100) -> Message:
    sent = round(NOON.timestamp() * 1000) - milliseconds_ago
    return Message.parse({"MessageId": name, "Body": "b", "Attributes": {"SentTimestamp": str(sent)}})


def day() -> Sequence[HistoryEvent]:
    """Events written by the code of splitting, so that code and report agree."""
    circumstances = {"split": SPLIT, "queue": SPLIT.queues[0], "at": NOON}
    deployed = Decision(None, (), ())
    again = events.routed(message("m2", milliseconds_ago=200), deployed, **circumstances)
    return [
        *events.routed(message("m1"), STOLEN, **circumstances),
        *again,
        *again,
        *events.routed(message("m3", milliseconds_ago=300), deployed, **circumstances),
        events.returned(message("m4"), deployed, left_by=ANN, **circumstances),
        events.dead_letter(
            message("m5"), target=SPLIT.target, original=MEMES, reason="InvalidMessageContents", at=NOON
        ),
        events.session(SPLIT.sessions[0], "ready", target=SPLIT.target, at=NOON),
    ]


@pytest.fixture
def run(lake: Lake, remembered: Callable[..., None], tmp_path: Path) -> Callable[..., Path]:
    """A function that reports days and returns the path of the report."""
    rows = {one.event_id: one for one in day()}.values()
    remembered(*({name: getattr(one, name, 1) for name in SCHEMA.names} | {"labels": dict(one.labels)} for one in rows))

    def made(*words: str, into: str = "report") -> Path:
        main(["split_report", "--database", lake.database, "--report_path", f"{tmp_path / into}", *words])
        return tmp_path / into

    return made


def table(lake: Lake) -> DataFrame:
    return lake.spark.table(lake.name("split_daily")).orderBy("day", "metric", "queue", "session", "label")


def test_the_text_of_a_day_lists_messages_by_destination(run):
    report = run("--day", DAY)

    assert (report / "text" / f"day={DAY}.txt").read_text() == TEXT
    assert "1 messages went to sessions, 2 to deployed consumers" in (report / "picture" / f"day={DAY}.svg").read_text()


def test_a_second_run_writes_the_same_report_and_a_day_without_events_has_zeros(lake, run):
    run("--day", "2026-11-22", "--days", "2")
    rows = table(lake).collect()
    run("--day", "2026-11-22", "--days", "2")

    assert table(lake).collect() == rows
    zeros = table(lake).where("day = '2026-11-22' and metric like 'routed%'").collect()
    expected = [("routed-total", label, 0, date(2026, 11, 22)) for label in ("copied", "deployed", "session")]
    assert [(row.metric, row.label, row.value, row.day) for row in zeros] == expected
