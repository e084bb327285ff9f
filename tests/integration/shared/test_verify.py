"""`signalbox verify` on a stage: everything works, and nothing is left, also after an interruption or a kill."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

from signalbox.cli.verify.cleanup import clean, left_over_runs
from signalbox.cli.verify.run import FLOW_OF
from signalbox.clients.deployment import Deployment, local_deployment
from signalbox.flows.consumer import DeployedConsumer
from signalbox.queues import QueueName
from signalbox.verify.names import RunId, RunNames, new_run_id
from signalbox.verify.questions import FAIRNESS, QUESTIONS
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

# The fixtures of tests/conftest.py with the local.json and the folder of each stage that the whole command is run on.
STAGES = {"no faults": ("deployed", "stage_folder"), "faults": ("deployed_with_faults", "faulty_stage_folder")}
CAPABILITIES = {"rendezvous", "splitting", "exchange", "live", "history", "SQS"}
INTERRUPTED = 128 + signal.SIGINT


@pytest.fixture
def verified(request: pytest.FixtureRequest) -> Deployment:
    """Return the stage that the command is run on: the calm one, unless a test names another."""
    local, folder = map(request.getfixturevalue, getattr(request, "param", STAGES["no faults"]))
    return local_deployment(local, folder=folder.path)


@pytest.fixture
def start(verified: Deployment, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return a function that starts the command in a folder with this stage."""
    (tmp_path / ".signalbox").symlink_to(verified.folder)
    running: list[subprocess.Popen[str]] = []

    def started(*options: str) -> subprocess.Popen[str]:
        program = Path(sys.executable).with_name("signalbox")
        running.append(
            subprocess.Popen(  # noqa: S603 - our own program
                [program, "verify", *options],
                cwd=tmp_path,
                env={**os.environ, "AWS_EC2_METADATA_DISABLED": "true"},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return running[-1]

    yield started
    for process in running:
        process.kill()
        process.communicate()


def remains(deployment: Deployment, run: str) -> set[str]:
    """Return the names with a run's id of all resources and records that a run can make."""
    session = deployment.session()
    names = {url.rpartition("/")[2] for url in pages(session, "sqs", "list_queues", "QueueUrls")}
    names |= {one["FunctionName"] for one in pages(session, "lambda", "list_functions", "Functions")}
    names |= {one["RoleName"] for one in pages(session, "iam", "list_roles", "Roles")}
    names |= {one["UserName"] for one in pages(session, "iam", "list_users", "Users")}
    names |= set(pages(session, "dynamodb", "list_tables", "TableNames"))
    mappings = pages(session, "lambda", "list_event_source_mappings", "EventSourceMappings")
    names |= {one["EventSourceArn"] for one in mappings}
    for table in ("ExchangeTable", "SplitTable"):
        items = pages(session, "dynamodb", "scan", "Items", TableName=deployment.outputs[table])
        # Counters and heads expire.
        names |= {f"{item['pk']['S']} {item['sk']['S']}" for item in items if "expires_at" not in item}
    return {name for name in names if run in name and not name.startswith("head#")}


def wait_until_gone(deployment: Deployment, run: str) -> None:
    """Wait until nothing of a run remains: lists are eventually consistent."""
    wait_for(lambda: not remains(deployment, run), f"{run} has left nothing behind")


def pages(session: boto3.Session, service: str, call: str, field: str, **options: object) -> list[Any]:
    found = session.client(service).get_paginator(call).paginate(**options)  # type: ignore[call-overload]
    return [one for page in found for one in page.get(field, ())]


@pytest.mark.parametrize("verified", STAGES.values(), ids=STAGES, indirect=True)
def test_every_capability_works_and_nothing_is_left(verified: Deployment, start):
    process = start("--json", "--without-jobs")
    output, progress = process.communicate()

    report = json.loads(output)
    assert [row for row in report["rows"] if row["outcome"] == "failed"] == [], progress
    assert (process.returncode, report["worked"]) == (0, True)
    assert {row["capability"] for row in report["rows"]} == CAPABILITIES == set(FLOW_OF)
    assert [row["what"] for row in report["rows"] if row["outcome"] != "ok"] == ["a Glue job runs"]
    # The local stage has no fair queues.
    assert set(report["answers"]) == {question.text for question in QUESTIONS if question is not FAIRNESS}
    assert [text for text, answered in report["answers"].items() if not answered["is_expected"]] == []
    assert 0 < report["price"]["usd"] < 1
    wait_until_gone(verified, report["run"])


def test_an_interrupted_run_deletes_what_it_has_made(verified: Deployment, start):
    process = start("--json", "--without-jobs")
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line)
        if "two users are made: ok" in line:
            break
    (run,) = re.findall(r"run ([0-9a-f]{10}) on", "".join(lines))
    assert remains(verified, run) != set()

    process.send_signal(signal.SIGINT)
    output, _ = process.communicate()

    report = json.loads(output)
    assert (process.returncode, report["worked"], report["complete"]) == (INTERRUPTED, False, False)
    assert report["left"] == []
    wait_until_gone(verified, run)


def test_the_next_run_finds_what_a_killed_one_left_behind_when_it_can_no_longer_run(verified: Deployment, start):
    old, young = (
        new_run_id(datetime.now(UTC) - timedelta(hours=hours), random="0123456789"[hours:]) for hours in (2, 0)
    )
    for run in (old, young):
        leave_behind(verified, run)

    assert left_over_runs(verified) == [old]
    assert clean(verified, old) == []
    wait_until_gone(verified, old)

    asked = start("--clean", young)
    assert (asked.communicate()[0], asked.returncode) == (f"nothing of the run {young} is left\n", 0)
    wait_until_gone(verified, young)


def leave_behind(deployment: Deployment, run: RunId) -> None:
    """Make a deployed consumer and a client queue, as a run that is killed in between leaves them."""
    names, prefix = RunNames(run), deployment.outputs["TemporaryQueuePrefix"]
    session = deployment.session()
    DeployedConsumer.deploy(session, names.consumer, [QueueName(names.consumer)], temporary_prefix=prefix)
    session.client("sqs").create_queue(QueueName=deployment.outputs["ClientQueuePrefix"] + names.client_id("000000"))
