"""`signalbox verify` without a stage: its options, and how flows become rows. tests/integration runs it on a stage."""

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner, Result

from signalbox.cli.main import app
from signalbox.cli.verify import commands
from signalbox.cli.verify.live import GRANTED, await_revocation, check_page
from signalbox.cli.verify.run import flows, report
from signalbox.cli.verify.trial import NamedTrial
from signalbox.clients.deployment import AwsDeployment
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import PatternCursor
from signalbox.clients.live.session import Login, RequestRefused
from signalbox.clients.web_socket import connector
from signalbox.errors import RejectedError
from signalbox.flows.run import Run
from signalbox.flows.trial import Journal, RunStopped, WrongResult, expect
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.verify.names import InvalidRunId, RunNames, parse_run_id
from signalbox.verify.questions import PAGE
from signalbox.verify.report import TrialOutcome
from tests.cli.shared.stage import serving
from tests.fakes.aws import aws
from tests.fakes.live_router import TICKET, grants, running

__all__ = ["aws"]
STAGE = AwsDeployment({}, "eu-west-1", "https://rendezvous.example/")


def verify(*options: str) -> Result:
    return CliRunner().invoke(app, ["verify", *options], catch_exceptions=False)


def trial() -> NamedTrial:
    return NamedTrial.of(STAGE, RunNames(parse_run_id("6b0387e0f7")))


def run_of(**named: Callable[[NamedTrial], None]) -> tuple[NamedTrial, Run]:
    made = trial()
    return made, Run(made, {name: partial(flow, made) for name, flow in named.items()})


def test_without_a_stage_nothing_is_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(RejectedError, match="no local stage runs"):
        verify()


def test_a_wrong_run_is_refused_before_any_call():
    with pytest.raises(InvalidRunId):
        verify("--aws", "--clean", "yesterday")


def test_a_stage_of_an_older_version_is_refused(aws: None):
    with serving({"BrokerQueueUrl": "https://q"}, []), pytest.raises(RejectedError, match="no output 'SplitTable'"):
        verify("--aws")


def test_a_run_names_its_stage(monkeypatch, capsys):
    made = NamedTrial.of(replace(STAGE, stage="prod"), trial().names)
    monkeypatch.setattr(commands, "_new_trial", lambda _: made)
    monkeypatch.setattr("signalbox.cli.verify.run.flows", lambda *_, **__: {})
    monkeypatch.setattr("signalbox.cli.verify.cleanup.clean", lambda *_: [])

    found, status = commands._verified(made.deployment, with_jobs=False)

    assert (found.run, found.rows, status) == ("6b0387e0f7", [], 0)
    assert capsys.readouterr().err.startswith("· run 6b0387e0f7 on stage prod in eu-west-1; everything that it makes")


def test_a_step_is_a_row_with_its_measurements():
    journal = Journal()
    with journal.step("live", "events") as timing:
        timing.latencies += [1.0, 2.0]
        timing.detail = "two"

    (row,) = journal.rows
    assert (row.outcome, row.latencies, row.detail) == (TrialOutcome.OK, (1.0, 2.0), "two")


def test_a_page_that_does_not_answer_is_an_answer_to_its_question():
    made = NamedTrial.of(replace(STAGE, outputs={"LivePageUrl": "https://127.0.0.1:1/live/"}), trial().names)

    with pytest.raises(WrongResult, match="integrationError"):
        check_page(made)

    assert not made.journal.answers[PAGE.text].is_expected


def test_a_failed_step_ends_its_flow_and_no_other():
    def fails(trial: NamedTrial) -> None:
        with trial.journal.step("rendezvous", "offer"):
            expect(False, "account 123456789012 has no answer")  # noqa: FBT003 - the condition
        raise AssertionError("the flow continues after a failed step")

    def works(trial: NamedTrial) -> None:
        with trial.journal.step("splitting", "session"):
            pass

    made, run = run_of(rendezvous=fails, splitting=works)
    run.wait()

    found = report(made, run, left=[])
    assert [(row.capability, row.outcome) for row in found.rows] == [
        ("rendezvous", TrialOutcome.FAILED),
        ("splitting", TrialOutcome.OK),
    ]
    assert found.rows[0].detail == "WrongResult: account <account> has no answer"
    assert not found.worked


def test_an_unexpected_error_of_a_flow_is_a_row():
    def breaks(_trial: NamedTrial) -> None:
        raise KeyError("Queues")

    made, run = run_of(exchange=breaks)
    run.wait()

    (row,) = report(made, run, left=[]).rows
    assert (row.what, row.outcome, row.detail) == ("the flow", TrialOutcome.FAILED, "KeyError: 'Queues'")


def test_the_end_of_a_run_interrupts_its_waits():
    waiting = threading.Event()

    def waits(trial: NamedTrial) -> None:
        with trial.journal.step("history", "events reach the lake"):
            waiting.set()
            trial.wait_until(lambda: False, "never", seconds=600)

    made, run = run_of(history=waits)
    thread = threading.Thread(target=run.wait)
    thread.start()
    assert waiting.wait(30)
    run.stop()
    thread.join()

    found = report(made, run, left=[])
    assert (found.is_complete, found.worked) == (False, False)
    with pytest.raises(RunStopped), made.journal.step("history", "a job"):
        pass


def test_a_condition_that_is_never_met_is_a_wrong_result():
    with pytest.raises(WrongResult, match="this did not happen within 0 s: it rains"):
        trial().wait_until(lambda: False, "it rains", seconds=0)


@pytest.mark.parametrize("is_cut", [False, True], ids=["connected", "cut"])
def test_a_revocation_is_seen_also_by_a_client_that_loses_its_connection(*, is_cut: bool):
    """A cut client joins again by the right that is left, and its subscription is refused."""
    revoked, lasting = GRANTED
    with running({"alice": grants(revoked, lasting)}) as router:
        with LiveClient(connector(router.url), Login("trial.fifo", "alice", TICKET)) as client:
            client.follow(PatternCursor(TopicPattern.parse(f"{revoked}events")))
            assert list(client.backfill()) == []
            with router.paused():
                if is_cut:
                    router.cut()
                router.revoke("alice", left=grants(lasting))

            await_revocation(trial(), client)

        assert router.joins == (2 if is_cut else 1)


def test_a_refusal_for_another_reason_is_no_revocation():
    def refuse(timeout_seconds: float) -> None:
        raise RequestRefused("wamp.error.canceled", "")

    with pytest.raises(RequestRefused):
        await_revocation(trial(), SimpleNamespace(receive=refuse))


def test_a_skipped_job_is_reported_as_skipped():
    journal = Journal()
    journal.skip("history", "a Glue job runs", "--without-jobs was given")

    assert [row.outcome for row in journal.rows] == [TrialOutcome.SKIPPED]


def test_calls_are_counted_and_priced(aws: None):
    made = trial()
    sqs = made.deployment.session().client("sqs")
    url = sqs.create_queue(QueueName="q")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="m")
    made.meter.note("exchange", "publication", 1_000_000)

    assert made.meter.calls == {("sqs", "CreateQueue"): 1, ("sqs", "SendMessage"): 1}
    document = report(made, Run(made, flows(made, with_jobs=False)), left=["a queue"]).to_document()
    assert document["price"]["calls"] == 2
    assert document["price"]["usd"] > 1
    assert json.loads(json.dumps(document))["left"] == ["a queue"]
