"""Local runs of Glue jobs with Spark: environment, settings and errors."""

import json
import subprocess
import sys

import pytest

from glue_jobs import replay
from signalbox.errors import RejectedError, UnavailableError
from signalbox.local.emulator.lifecycle import Credentials
from signalbox.local.spark import jobs

CREDENTIALS = Credentials("AKIAEXAMPLE", "secret")


def test_an_unknown_job_is_refused_with_the_names_of_all_jobs():
    with pytest.raises(RejectedError, match=r"no Glue job 'wether_report'; the jobs are: .*rendezvous_report"):
        jobs.run_jobs(
            [("wether_report", {})], endpoint_url="", credentials=CREDENTIALS, region="", on_line=lambda line: None
        )


def test_a_job_has_the_given_credentials_and_no_other_setting_of_aws_or_spark(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "company")
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master yarn pyspark-shell")

    environment = jobs._environment(tmp_path, CREDENTIALS, endpoint_url="http://127.0.0.1:1", region="us-east-1")

    of_aws_and_spark = {key for key in environment if key.startswith(("AWS_", "SPARK_", "PYSPARK_"))}
    own = {"AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION"}
    own |= {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "SPARK_CONF_DIR", "SPARK_LOCAL_IP", "PYSPARK_PYTHON"}
    assert of_aws_and_spark == own
    assert environment["AWS_SECRET_ACCESS_KEY"] == "secret"


def test_java_finds_files_whose_paths_are_not_ascii_whatever_the_locale_is(tmp_path, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")
    environment = jobs._environment(tmp_path, CREDENTIALS, endpoint_url="", region="")

    java = [f"{environment['JAVA_HOME']}/bin/java", "-XshowSettings:properties", "-version"]
    settings = subprocess.run(java, env=environment, capture_output=True, text=True, check=True).stderr  # noqa: S603 - ours

    assert "sun.jnu.encoding = UTF-8" in settings


def test_the_error_of_a_failed_job_has_the_cause_without_stack_frames(tmp_path):
    lines = ["Py4JJavaError: no bucket", "\tat java.lang.Thread.run(Thread.java:840)", "\t... 7 more", "   ^^^^", ""]
    script = f"import sys; print({chr(10).join(lines)!r}); sys.exit(1)"
    heard = []

    said = jobs._run([sys.executable, "-c", script], {}, folder=tmp_path, on_line=heard.append)

    assert said == heard == ["Py4JJavaError: no bucket"]


def test_what_a_job_refuses_is_the_error_without_the_way_to_it():
    given = dict.fromkeys(("replay_id", *replay.STAGE), "r") | {"rate": "fast"}
    heard = []

    with pytest.raises(RejectedError, match=r"^rate 'fast': expected 1 to") as refused:
        jobs.run_jobs(
            [("replay", given)], endpoint_url="", credentials=CREDENTIALS, region="us-east-1", on_line=heard.append
        )

    assert len(str(refused.value).splitlines()) == 1
    assert [line for line in heard if not line.startswith("downloading ")] == []


@pytest.mark.parametrize("sign", jobs.ADVICE)
def test_the_error_of_a_failed_job_ends_with_what_to_do(monkeypatch, sign):
    monkeypatch.setattr(jobs, "_run", lambda *_, **__: ["Traceback", f"a.b: {sign}: words"])

    with pytest.raises(UnavailableError) as raised:
        jobs.run_jobs([("query", {})], endpoint_url="", credentials=CREDENTIALS, region="", on_line=lambda line: None)

    assert str(raised.value).splitlines()[-1] == jobs.ADVICE[sign]


def test_a_successful_job_has_no_error(tmp_path):
    assert jobs._run([sys.executable, "-c", "print(1)"], {}, folder=tmp_path, on_line=lambda line: None) is None


def test_local_jobs_use_the_iceberg_settings_of_aws():
    from stacks.history.job import SETTINGS  # noqa: PLC0415 - takes seconds, for the CDK behind it

    assert jobs.ICEBERG_SETTINGS == SETTINGS


def test_jobs_of_one_spark_session_run_one_after_another_with_their_own_arguments(tmp_path):
    script = tmp_path / "job.py"
    script.write_text("import sys; print(__name__, *sys.argv[1:])")
    commands = json.dumps([[str(script), "--day", "1"], [str(script), "--day", "2"]])
    heard = []

    own = {"PYTHONPATH": str(jobs.CHECKOUT)}
    jobs._run([sys.executable, str(jobs.JOB_RUNNER)], own, folder=tmp_path, on_line=heard.append, given=commands)

    assert heard == ["__main__ --day 1", "__main__ --day 2"]


def test_a_process_that_runs_already_gets_its_input_when_it_may_begin(tmp_path):
    script = "import pathlib; print('begun', flush=True); print(input(), pathlib.Path('ready').exists())"
    lines = []

    jobs._run(
        [sys.executable, "-c", script],
        {},
        folder=tmp_path,
        on_line=lines.append,
        given="the jobs",
        when=(tmp_path / "ready").touch,
    )

    assert lines == ["begun", "the jobs True"]


def test_a_process_that_ends_before_its_input_reports_why(tmp_path):
    ended = jobs._run(
        [sys.executable, "-c", "raise SystemExit('no Java')"],
        {},
        folder=tmp_path,
        on_line=lambda line: None,
        given="the jobs" * 100_000,
    )

    assert ended == ["no Java"]


def test_jobs_do_not_run_when_what_they_wait_for_fails(tmp_path):
    def fail():
        raise RejectedError("no events")

    with pytest.raises(RejectedError, match="no events"):
        jobs._run([sys.executable, "-c", "input()"], {}, folder=tmp_path, on_line=lambda line: None, when=fail)


@pytest.mark.spark
def test_other_users_of_the_machine_cannot_call_a_job(spark):
    assert spark._jvm.org.apache.spark.SparkEnv.get().securityManager().isAuthenticationEnabled()
