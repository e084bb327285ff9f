"""The commands `history`, `report` and `replay` on a fake AWS stage with Athena, Glue and S3."""

import json
import re
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import boto3
import pytest
from botocore.client import BaseClient
from typer.testing import CliRunner, Result

from signalbox.aws.history.athena import Athena, QueryFailed
from signalbox.aws.history.replay_records import S3ReplayRecords
from signalbox.cli.history.jobs import Job, run_jobs
from signalbox.cli.main import app
from signalbox.clients.deployment import LocalDeployment
from signalbox.errors import RejectedError, SignalboxError
from signalbox.exchange.model.patterns import InvalidPattern
from signalbox.history.jobs import FILE_EXTENSIONS, REPORTS
from signalbox.history.replay_state import InvalidReplay, ReplayId, ReplayProgress, SendResult
from tests.adapters.shared.stubs import URLS
from tests.cli.shared.stage import serving
from tests.docs.markdown import ROOT, blocks
from tests.fakes.athena import stub_rows
from tests.fakes.aws import aws

__all__ = ["aws"]
ANSWER = [["kind", "kind"], ["offer", None], ["answer", "a,b"]]
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
JOBS = ("compact_history", "day", "export_logs", "replay", *(report.script for report in REPORTS.values()))


@pytest.fixture
def stage(aws: None) -> Iterator[None]:
    boto3.client("s3").create_bucket(Bucket="lake")
    for script in JOBS:
        command = {"Name": "glueetl", "ScriptLocation": f"s3://lake/{script}.py"}
        boto3.client("glue").create_job(Name=f"signalbox-{script.replace('_', '-')}", Role="job", Command=command)
    outputs = {
        "HistoryBucket": "lake",
        "HistoryDatabase": "signalbox_lake",
        "HistoryReaderArn": "arn:aws:iam::123456789012:role/reader",
        "ExchangeControlQueueUrl": f"{URLS}signalbox-exchange-control",
        "ExchangePrefix": "",
    }
    boto3.client("sqs").create_queue(QueueName="signalbox-exchange-control")
    with serving(outputs, [outputs["ExchangeControlQueueUrl"]]) as running:
        live = {"xlog.fifo": True, "xjobs": False}
        running.replies["exchanges"] = lambda _: [{"exchange": name, "live": live[name]} for name in live]
        running.replies["queues"] = lambda _: [{"queue": "q_a"}]
        yield


def signalbox(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--aws"], catch_exceptions=False)


def started(script: str) -> list[dict[str, str]]:
    """Return the arguments of a job's runs."""
    runs = boto3.client("glue").get_job_runs(JobName=f"signalbox-{script.replace('_', '-')}")["JobRuns"]
    return [run.get("Arguments", {}) for run in runs]


@pytest.fixture
def answering(stage: None) -> None:
    """Make `ANSWER` Athena's result of the next query."""
    rows = [{"Data": [{} if text is None else {"VarCharValue": text} for text in row]} for row in ANSWER]
    stub_rows(rows, database="signalbox_lake")


@pytest.mark.usefixtures("answering")
@pytest.mark.parametrize(
    ("option", "printed"),
    [("--csv", 'kind,kind\noffer,\nanswer,"a,b"\n'), ("--json", '[\n  {\n    "kind": null')],
)
def test_a_query_prints_its_result_in_the_requested_format(option, printed):
    assert signalbox("history", "query", "SELECT kind FROM events", option).stdout.startswith(printed)


@pytest.mark.usefixtures("answering")
def test_a_query_prints_a_table_by_default():
    shown = signalbox("history", "query", "(SELECT 1)").stdout

    assert "offer" in shown
    assert "a,b" in shown


@pytest.mark.usefixtures("answering")
def test_an_analyst_needs_the_permissions_of_the_page_and_no_others(monkeypatch: pytest.MonkeyPatch):
    (policy,) = (block for block in blocks(ROOT / "docs" / "first-year.md") if block.kind == "analyst")
    own, call, used = boto3.Session().get_credentials(), BaseClient._make_api_call, set()

    def recorded(client: BaseClient, operation: str, request: dict[str, object]) -> object:
        is_of_command = threading.current_thread() is threading.main_thread()  # not of the stage
        if is_of_command and client._request_signer._credentials.access_key == own.access_key:
            used.add(f"{client.meta.service_model.service_name}:{operation}")
        return call(client, operation, request)

    monkeypatch.setattr(BaseClient, "_make_api_call", recorded)
    signalbox("history", "query", "SELECT 1")

    assert used == {statement["Action"] for statement in json.loads(policy.code)["Statement"]}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["SELECT 1", "--csv", "--json"], "not both"),
    ],
)
def test_an_invalid_query_is_refused_before_any_call(arguments, problem):
    with pytest.raises(RejectedError, match=problem):
        signalbox("history", "query", *arguments)


@pytest.fixture
def failing_query(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """Run a query on a local stage whose Spark writes this document."""

    def query(document: dict[str, object], sql: str = "SELECT * FROM events") -> Result:
        def run_jobs(_deployment: object, jobs: Sequence[Job], _on_line: object) -> None:
            (first, window), (script, arguments) = jobs
            assert (first, window["maintain"], script) == ("compact_history", "no", "query")
            Path(arguments["output"]).write_text(json.dumps(document))

        deployment = LocalDeployment({}, "us-east-1", "", "http://127.0.0.1:4566", tmp_path)
        monkeypatch.setattr("signalbox.cli.history.commands.run_jobs", run_jobs)
        monkeypatch.setattr("signalbox.cli.shared.deployment.find_deployment", lambda **_: deployment)
        return signalbox("history", "query", sql)

    return query


def test_a_run_on_this_machine_is_announced_before_spark_is_started(monkeypatch, capsys):
    said = []
    started = "signalbox.local.spark.history_jobs.run_locally"
    monkeypatch.setattr(started, lambda *_: said.append(capsys.readouterr().err))

    run_jobs(
        LocalDeployment({"HistoryBucket": "lake"}, "us-east-1", "", "http://127.0.0.1:1", Path()),
        [("query", {})],
        print,
    )

    assert said == ["· Spark starts on this machine: query\n"]


def test_a_stage_without_history_is_refused_before_spark_is_started(capsys):
    stage = LocalDeployment({"Capabilities": "exchange"}, "us-east-1", "", "http://127.0.0.1:1", Path())

    with pytest.raises(RejectedError, match="the stage has no history: its capabilities are exchange"):
        run_jobs(stage, [("query", {})], print)

    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("stage")
def test_a_folder_that_cannot_be_written_is_refused_before_the_report_is_made(tmp_path):
    file = tmp_path / "file"
    file.touch()

    with pytest.raises(
        RejectedError, match=r"cannot write to '.*file/reports': Not a directory; give another --folder"
    ):
        signalbox("report", "topics", "--folder", str(file / "reports"))

    assert started("topic_report") == []


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("DROP TABLE events", "none begins with 'DROP'; there are 'DESC'"),
        ("SELEC 1", "none begins with 'SELEC'; did you mean 'SELECT'?"),
        (" ", "none begins with ''"),
    ],
)
def test_what_begins_no_query_is_refused_before_spark_starts(failing_query, sql, problem):
    with pytest.raises(RejectedError, match=re.escape(problem)):
        failing_query({"columns": [], "rows": []}, sql)


def test_a_query_of_a_stage_without_tables_names_the_command_that_makes_them(failing_query):
    problem = {"problem": "[TABLE_OR_VIEW_NOT_FOUND] `events`", "is_missing": True, "tables": []}

    with pytest.raises(RejectedError, match=r"`events`\nthere is no history yet: `signalbox report NAME` makes"):
        failing_query(problem)


def test_a_query_of_a_missing_table_names_those_that_exist(failing_query):
    with pytest.raises(RejectedError, match=r"there are the tables events, split_daily: `signalbox report NAME`"):
        failing_query({"problem": "…", "is_missing": True, "tables": ["split_daily", "events"]})


def test_a_result_without_rows_is_stated(failing_query):
    assert failing_query({"columns": ["kind"], "rows": []}).stderr == "· no rows\n"


def test_another_problem_of_a_query_is_one_line(failing_query):
    problem = "[UNRESOLVED_COLUMN] A column with name `knd` cannot be resolved. Did you mean `kind`?"

    with pytest.raises(RejectedError) as refused:
        failing_query({"problem": problem, "is_missing": False, "tables": ["events"]})

    assert str(refused.value) == problem


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize(
    ("reason", "hint"), [("TABLE_NOT_FOUND: line 1:15: Table does not exist", True), ("SYNTAX_ERROR: line 1:8", False)]
)
def test_a_missing_table_in_athena_is_explained(monkeypatch, reason, hint):
    def fail(*_: object) -> None:
        raise QueryFailed(f"Athena: FAILED: {reason}")

    monkeypatch.setattr(Athena, "table", fail)

    with pytest.raises(RejectedError) as refused:
        signalbox("history", "query", "SELECT * FROM events")

    assert ("a new stage has no tables" in str(refused.value)) is hint


def put_report(name: str, day: str) -> None:
    for kind in FILE_EXTENSIONS:
        body = json.dumps({"day": day}) if kind == "json" else f"{kind} of {day}"
        boto3.client("s3").put_object(Bucket="lake", Key=REPORTS[name].key(kind, day), Body=body)


@pytest.mark.usefixtures("stage")
def test_a_report_is_created_by_its_job_printed_and_saved(tmp_path):
    for day in ("2026-11-19", "2026-11-20"):
        put_report("topics", day)

    result = signalbox(
        "report", "topics", "--from", "2026-11-19", "--to", "2026-11-20", "--fresh", "--folder", str(tmp_path)
    )

    window = {"--from": "2026-11-19", "--to": "2026-11-21"}
    assert (started("compact_history"), started("topic_report")) == ([window], [window])
    assert result.stdout == "text of 2026-11-19\ntext of 2026-11-20\n"
    assert (tmp_path / "topics" / "2026-11-20.svg").read_text() == "picture of 2026-11-20"


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize(("option", "compact"), [("--fresh", "yes"), ("--no-fresh", "no")])
def test_all_reports_are_created_by_one_job(tmp_path, option, compact):
    for name in REPORTS:
        put_report(name, "2026-11-20")

    result = signalbox("report", "all", "--from", "2026-11-20", option, "--folder", str(tmp_path))

    assert started("day") == [{"--from": "2026-11-20", "--to": "2026-11-21", "--compact": compact}]
    assert not started("compact_history")
    assert {path.parent.name for path in tmp_path.glob("*/2026-11-20.txt")} == set(REPORTS)
    assert result.exit_code == 0


@pytest.mark.usefixtures("stage")
def test_in_aws_a_report_runs_no_compaction_by_default(tmp_path):
    put_report("order", "2026-11-20")

    result = signalbox("report", "order", "--from", "2026-11-20", "--json", "--folder", str(tmp_path))

    assert json.loads(result.stdout) == [{"day": "2026-11-20"}]
    assert started("compact_history") == []


@pytest.mark.usefixtures("stage")
def test_a_log_is_exported_and_the_files_of_matching_topics_are_saved(tmp_path):
    for topic in ("jobs.1.log", "jobs.a%2Fb.log", "other"):
        boto3.client("s3").put_object(Bucket="lake", Key=f"logs/xlog.fifo/topic={topic}/2026-11-20.txt", Body=topic)

    result = signalbox("log", "export", "xlog.fifo", "--topics", "jobs.*.log", "--folder", str(tmp_path))

    assert started("export_logs") == [{"--exchange": "xlog.fifo", "--topics": "jobs.*.log"}]
    saved = [tmp_path / "xlog.fifo" / f"topic={topic}" / "2026-11-20.txt" for topic in ("jobs.1.log", "jobs.a%2Fb.log")]
    assert result.stdout.splitlines() == [str(path) for path in saved]
    assert [path.read_text() for path in saved] == ["jobs.1.log", "jobs.a%2Fb.log"]
    assert len(list(tmp_path.rglob("*.txt"))) == 2
    assert {stat.filemode(path.stat().st_mode) for path in tmp_path.rglob("*")} == {"-rw-------", "drwx------"}


@pytest.mark.usefixtures("stage")
def test_the_export_of_topics_without_events_is_refused(tmp_path):
    with pytest.raises(RejectedError, match=r"exchange 'xlog.fifo' has no events of topics 'a.#'"):
        signalbox("log", "export", "xlog.fifo", "--topics", "a.#", "--folder", str(tmp_path))


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["log", "export", "xlg.fifo"], "there is no live exchange 'xlg.fifo'; did you mean 'xlog.fifo'?"),
        (["log", "export", "xjobs"], "there is no live exchange 'xjobs'; there is 'xlog.fifo'"),
        (["replay", "--exchange", "xlg.fifo", "--into", "q_a"], "there is no live exchange 'xlg.fifo'; did you mean"),
        (["replay", "--exchange", "xlog.fifo", "--into", "q_b"], "--into: there is no 'q_b'; did you mean 'q_a'?"),
        (["replay", "--dead-letters", "q_A", "--into", "q_a"], "--dead-letters: there is no 'q_A'; did you mean 'q_a'"),
    ],
)
def test_a_wrong_name_is_refused_before_a_job_starts(tmp_path, monkeypatch, arguments, problem):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(RejectedError, match=re.escape(problem)):
        signalbox(*arguments)

    assert (started("export_logs"), started("replay")) == ([], [])


@pytest.mark.usefixtures("stage")
def test_what_a_deleted_exchange_and_queue_left_is_exported_and_replayed(tmp_path):
    boto3.client("s3").put_object(Bucket="lake", Key="logs/xold.fifo/topic=a/2026-11-20.txt", Body="event")
    boto3.client("sqs").create_queue(QueueName="q_old-dlq")
    put_replay("r", topics={})

    exported = signalbox("log", "export", "xold.fifo", "--folder", str(tmp_path))
    signalbox("replay", "--exchange", "xold.fifo", "--into", "q_a", "--id", "r", "--yes")
    signalbox("replay", "--dead-letters", "q_old", "--into", "q_a", "--id", "r", "--yes")

    assert Path(exported.stdout.strip()).read_text() == "event"
    assert started("export_logs") == []
    assert [run.get("--dead_letters", run.get("--exchange")) for run in started("replay")] == ["xold.fifo", "q_old"]


def put_replay(name: str, *, topics: dict[str, int], messages: int = 2) -> ReplayProgress:
    """Store a record and a plan as the job does."""
    planned = ReplayProgress(ReplayId(name), {"into": "q_a"}, "7", messages=messages, size_bytes=20, planned_at=NOON)
    S3ReplayRecords(boto3.client("s3"), "lake", "replays/").save(planned)
    plan = {"messages": 2, "size_bytes": 20, "rate": 1, "seconds": 2, "topics": topics, "left_out": {"large": 1}}
    boto3.client("s3").put_object(Bucket="lake", Key=f"replays/{name}.plan.json", Body=json.dumps(plan))
    return planned


@pytest.mark.usefixtures("stage")
def test_an_unconfirmed_replay_is_counted_and_not_sent():
    put_replay("r", topics={"a.b": 2})

    result = signalbox(
        "replay", "--exchange", "xlog.fifo", "--topics", "a.*", "--into", "q_a", "--rate", "1", "--id", "r"
    )

    assert started("export_logs") == [{"--exchange": "xlog.fifo", "--topics": "a.*"}]
    assert result.stderr.startswith("· replay r on stage signalbox in ")
    assert [run["--dry_run"] for run in started("replay")] == ["yes"]
    assert "2 messages, 20 bytes, at 1 a second: at least 2 s" in result.stderr
    assert "2  a.b" in result.stderr
    assert "1  excluded: large" in result.stderr
    assert "--resume r" in result.stderr
    assert "planned" in result.stdout


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize("option", [[], ["--yes"], ["--json"]])
def test_a_replay_without_messages_says_why_and_offers_nothing_to_send(option):
    put_replay("r", topics={}, messages=0)

    result = signalbox("replay", "--dead-letters", "q_a", "--into", "q_a", "--id", "r", *option)

    assert "1  excluded: large" in result.stderr
    assert "no message is selected: nothing is sent" in result.stderr
    assert "--resume" not in result.stderr


@pytest.mark.usefixtures("stage")
def test_dead_letters_are_sent_at_once_with_yes():
    put_replay("r", topics={})

    signalbox("replay", "--dead-letters", "q_a", "--into", "q_a", "--id", "r", "--yes")

    wanted = {"--replay_id": "r", "--rate": "100", "--dead_letters": "q_a", "--into": "q_a", "--dry_run": "no"}
    assert (started("replay"), started("export_logs")) == ([wanted], [])


@pytest.mark.usefixtures("stage")
def test_a_replay_is_resumed_by_its_id_and_prints_messages_not_sent():
    planned = put_replay("r", topics={})
    records = S3ReplayRecords(boto3.client("s3"), "lake", "replays/")
    records.load(ReplayId("r"))
    sent = SendResult(refused={"1": "too long"}, doubtful=["2"])
    records.save(planned.claimed(["1", "2"], at=NOON).settled(sent).finished())

    result = signalbox("replay", "--resume", "r")

    assert started("replay") == [{"--replay_id": "r", "--rate": "100"}]
    assert "refused: 1: too long" in result.stderr
    assert "in doubt, possibly sent: 2" in result.stderr


@pytest.mark.usefixtures("stage")
def test_json_output_is_the_record_of_the_replay():
    planned = put_replay("r", topics={})

    result = signalbox("replay", "--resume", "r", "--json")

    assert json.loads(result.stdout) == planned.to_document()


@pytest.mark.usefixtures("stage")
def test_an_unknown_replay_is_refused():
    with pytest.raises(RejectedError, match="replay 'r' does not exist"):
        signalbox("replay", "--resume", "r")


@pytest.mark.parametrize(
    ("arguments", "error", "problem"),
    [
        ("history query SELECT --csv --json", RejectedError, "not both"),
        ("report weather", RejectedError, "there are 'all', 'cost', 'delivery'"),
        ("report topics --from 2026-11-20 --to 2026-11-19", RejectedError, "--to 2026-11-19 is before"),
        ("report topics --from 2999-01-01", RejectedError, "--from: 2999-01-01 has not begun"),
        ("report topics --to soon", RejectedError, "--to: expected a day such as"),
        ("report topic", RejectedError, "unknown report 'topic'; did you mean 'topics'?"),
        ("replay --into q_a", RejectedError, None),
        ("replay --exchange x --dead-letters q_a --into q_a", RejectedError, None),
        ("replay --exchange x", RejectedError, None),
        ("replay --resume r --into q_a", RejectedError, None),
        ("replay --exchange x --into q_a --id a/b", InvalidReplay, None),
        ("replay --exchange x --into q_a --topics #.#.#", InvalidPattern, None),
        ("replay --exchange x --into q_a --from week", RejectedError, None),
        ("replay --exchange x --into q_a --from 2026-11-20T10:00+01:00 --to 2026-11-20T09", RejectedError, None),
        ("replay --exchange x --into q_a --from 2026-11-20 --to 2026-13-01", RejectedError, None),
    ],
)
def test_invalid_options_are_refused_before_a_job_starts(arguments, error: type[SignalboxError], problem):
    with pytest.raises(error, match=problem):
        signalbox(*arguments.split())
