"""`signalbox split run --endpoint`: a function behind AWS's own runtime interface emulator, against a fake stage."""

from collections.abc import Iterator

import pytest

from tests.cli.shared.stage import printed
from tests.cli.splitting.handler_desk import TARGET, Desk, desk  # noqa: F401 - a fixture
from tests.cli.splitting.runtime_interface_emulator import emulated, unused_port
from tests.fakes.aws import aws  # noqa: F401 - a fixture

TIMEOUT_SECONDS = 1
HANDLER = """
import sys, time
def handler(event, context):
    bodies = [one["body"] for one in event["Records"]]
    note(bodies=bodies, arn=event["Records"][0]["eventSourceARN"])
    if "slow" in bodies:
        time.sleep(60)
    if "raise" in bodies:
        raise ValueError("no such meme")
    if "exit" in bodies:
        sys.exit(3)
    failed = [one["messageId"] for one in event["Records"] if one["body"] == "bad"]
    return {"batchItemFailures": [{"itemIdentifier": one} for one in failed]}
"""


@pytest.fixture
def endpoint(desk: Desk) -> Iterator[str]:  # noqa: F811
    desk.write(HANDLER)
    with emulated("app.handler", desk.folder, timeout_seconds=TIMEOUT_SECONDS) as url:
        yield url


def test_an_endpoint_gets_the_event_and_its_answer_decides(desk, endpoint):  # noqa: F811
    desk.send("good", "bad")

    options = ("--endpoint", endpoint, "--report-batch-item-failures")
    result = desk.run(*TARGET, *options, until=lambda: printed("1 failed") and desk.left() == (0, 1))

    assert {one["arn"] for one in desk.seen()} == {"arn:aws:sqs:us-east-1:123456789012:memes"}
    assert "the endpoint's function reads its queue's name there: MEME_QUEUE=mirrord-1" in result.stderr


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise", "ValueError: no such meme"),
        ("slow", "Sandbox.Timedout: Task timed out after 1.00 seconds"),
        ("exit", "Runtime.ExitError: RequestId: "),
    ],
)
def test_an_error_behind_an_endpoint_fails_the_batch(desk, endpoint, body, reason):  # noqa: F811
    desk.send(body)

    done = lambda: printed("1 failed") and desk.left() == (0, 1)  # noqa: E731 - read once
    result = desk.run(*TARGET, "--endpoint", endpoint, until=done)

    assert f"1 failed: {reason}" in result.stderr


def test_no_message_is_received_while_an_endpoint_is_away(desk):  # noqa: F811
    desk.send("hello")
    url = f"http://127.0.0.1:{unused_port()}/2015-03-31/functions/function/invocations"

    result = desk.run(*TARGET, "--endpoint", url, until=lambda: printed("cannot be reached"))

    assert desk.left() == (1, 0)
    assert "so no message is received until it can" in result.stderr
