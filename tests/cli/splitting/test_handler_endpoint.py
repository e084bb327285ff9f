"""`signalbox split run --endpoint`: a function behind AWS's own runtime interface emulator, against a fake stage."""

from collections.abc import Iterator

import pytest

from tests.cli.shared.stage import printed
from tests.cli.splitting.handler_desk import TARGET, Desk, desk  # noqa: F401 - a fixture
from tests.cli.splitting.runtime_interface_emulator import emulated
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
