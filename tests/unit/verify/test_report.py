"""The report of a run: its outcome, its names and its price."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.history.prices import PRICES
from signalbox.history.prices import USAGES as PRICED
from signalbox.verify.bill import bill, units
from signalbox.verify.names import InvalidRunId, RunNames, began_at, is_left_over, new_run_id, parse_run_id, run_of
from signalbox.verify.questions import QUESTIONS
from signalbox.verify.report import (
    Answered,
    Report,
    Row,
    TrialOutcome,
    has_lowest,
    inversions,
    lowest_versions,
    masked,
    shape,
    start_seconds,
)

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
RUN = new_run_id(NOON, random="ab")
OK, FAILED, SKIPPED = (
    Row("live", "events", outcome) for outcome in (TrialOutcome.OK, TrialOutcome.FAILED, TrialOutcome.SKIPPED)
)
REPORT = Report("r", {}, [OK], {}, {})


@pytest.mark.parametrize(
    ("report", "worked"),
    [
        (REPORT, True),
        (replace(REPORT, rows=[OK, SKIPPED]), True),
        (replace(REPORT, rows=[OK, FAILED]), False),
        (replace(REPORT, rows=[SKIPPED]), False),
        (replace(REPORT, rows=[]), False),
        (replace(REPORT, left=["queue"]), False),
        (replace(REPORT, is_complete=False), False),
    ],
    ids=["all", "one was skipped", "one failed", "nothing was tried", "nothing", "something is left", "interrupted"],
)
def test_a_run_worked_only_if_all_that_was_tried_worked_and_nothing_is_left(report: Report, worked):
    assert report.worked is worked
    assert report.to_document()["worked"] is worked


def test_a_row_has_its_median_and_maximum():
    document = replace(OK, latencies=(3.0, 1.0, 2.0)).to_document()

    assert (document["measured"], document["median_seconds"], document["maximum_seconds"]) == (3, 2.0, 3.0)


def test_an_answer_has_what_is_expected_and_what_is_wrong_otherwise():
    question = QUESTIONS[0]
    report = replace(
        REPORT, answers={question.text: Answered(question, {"delivery_stream": "CREATING"}, is_expected=False)}
    )

    assert report.to_document()["answers"] == {
        "trust policy of Firehose's role": {
            "answer": {"delivery_stream": "CREATING"},
            "expected": "the delivery stream is ACTIVE",
            "is_expected": False,
            "otherwise": question.otherwise,
        }
    }


# https://docs.aws.amazon.com/lambda/latest/dg/python-logging.html
REPORT_LINE = (
    "REPORT RequestId: 1c8df7d3\tDuration: 140.50 ms\tBilled Duration: 260 ms\tMemory Size: 128 MB\t"
    "Max Memory Used: 73 MB{start}\t\nXRAY TraceId: 1-5e34a6\tSegmentId: 07f5\tSampled: true"
)


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        (REPORT_LINE.format(start="\tInit Duration: 1117.41 ms"), 1.25791),
        (REPORT_LINE.format(start=""), None),
        ("START RequestId: 1c8df7d3", None),
    ],
)
def test_a_start_and_its_call_are_read_from_the_report_of_lambda(line, seconds):
    assert start_seconds(line) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("found", "is_enough"),
    [({"boto3": "1.35.100", "urllib3": "2.0"}, True), ({"boto3": "1.35.9", "urllib3": "2.0"}, False), ({}, False)],
)
def test_libraries_are_compared_with_the_lowest_versions_of_a_file(found, is_enough):
    lowest = lowest_versions("# the runtime's\nboto3>=1.35.24     # tags\nurllib3>=1.26.19\n")

    assert has_lowest(found, lowest) is is_enough


def test_a_row_without_a_measurement_has_no_times():
    assert (SKIPPED.median, SKIPPED.longest) == (None, None)


@pytest.mark.parametrize(("numbers", "late"), [([], 0), ([1, 2, 3], 0), ([2, 1, 3], 1), ([3, 1, 2], 2), ([1, 1, 2], 0)])
def test_numbers_after_a_larger_one_are_out_of_order(numbers, late):
    assert inversions(numbers) == late


@pytest.mark.parametrize(
    ("sender", "form"),
    [
        ("AIDAIOSFODNN7EXAMPLE0", "AIDA and 17 more characters"),
        ("AROAIOSFODNN7EXAMPLE0:ann", "AROA and 17 more characters, then ':' and 3 characters"),
        ("me", "a short text"),
    ],
)
def test_the_form_of_an_id_does_not_contain_the_id(sender, form):
    assert shape(sender) == form


def test_an_error_is_one_line_without_account_ids():
    assert masked("no\n  queue arn:aws:sqs:eu:123456789012:q") == "no queue arn:aws:sqs:eu:<account>:q"


def test_a_run_is_named_by_its_time():
    assert began_at(RUN) == NOON
    assert not is_left_over(RUN, now=NOON + timedelta(minutes=59))
    assert is_left_over(RUN, now=NOON + timedelta(minutes=61))


@pytest.mark.parametrize("text", ["", "6b03", "6b0387e0f71", "6b0387e0fX", "6B0387E0F7"])
def test_another_text_is_no_run(text):
    with pytest.raises(InvalidRunId, match="10 hexadecimal digits"):
        parse_run_id(text)


def test_every_name_of_a_run_leads_back_to_it():
    names = RunNames(RUN)

    made = (names.user, names.reader, names.consumer, names.probe_queue, names.strange_queue)
    assert {run_of(name) for name in (*made, *names.exchanges, *names.queues)} == {RUN}
    assert run_of("verify-") is run_of("q_alice_verify") is None


def test_a_client_id_has_upstreams_form_and_begins_with_the_run():
    made = RunNames(RUN).client_id("0123456789abcdef")

    assert len(made) == 16
    assert made.startswith(RUN)


USAGES = [
    ("exchange", "publication", "SQS request", 3.0),
    ("exchange", "publication", "DynamoDB read unit", 1.0),
    ("live", "event", "DynamoDB read unit", 1.0),
]
CALLS = {
    ("sqs", "SendMessage"): 4,
    ("athena", "StartQueryExecution"): 2,
    ("athena", "GetQueryExecution"): 9,
    ("glue", "StartJobRun"): 1,
    ("glue", "GetJobRun"): 9,
    ("iam", "CreateUser"): 3,
}


def test_calls_and_facts_are_billed_as_units():
    assert units(CALLS, {("exchange", "publication"): 10}, USAGES) == {
        "SQS FIFO request": 34,
        "KMS request": 4,
        "Athena query": 2,
        "Glue run": 1,
        "DynamoDB read unit": 10,
    }


def test_the_price_is_the_sum_of_its_items():
    price = bill({"KMS request": 1_000_000, "SQS FIFO request": 2_000_000}, {"SQS FIFO request": 0.5})

    assert price["usd"] == 4.0
    assert price["items"]["SQS FIFO request"] == {"units": 2_000_000, "usd": 1.0}


def test_every_billed_item_has_a_price():
    used = [(usage.capability, usage.what, usage.item, usage.most) for usage in PRICED]
    services = {(name, "call"): 1 for name in ("sqs", "dynamodb", "s3", "http", "websocket")} | CALLS
    found = units(services, {(usage.capability, usage.what): 1 for usage in PRICED}, used)

    assert bill(found, PRICES)["usd"] > 0
