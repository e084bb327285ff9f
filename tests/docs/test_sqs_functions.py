"""`examples/sqs` without a stage: `stage.sh` with an AWS CLI whose calls take no time, and errors of `stage.py`."""

import os
import subprocess
import sys

import pytest

from signalbox.local.files import CHECKOUT

# A receive runs in a subshell and advances the clock of the shell by a signal; bash's own clock ends with `unset`.
SILENT = """
unset SECONDS
SECONDS=0
trap 'SECONDS=$((SECONDS + 20))' USR1
aws() { if [[ $2 == receive-message ]]; then kill -USR1 $$; echo None; fi; }
. examples/sqs/stage.sh
ask CONTROL REPLY '"command": whoami'
echo "$? after $SECONDS s"
"""


def test_a_command_without_a_reply_ends_and_says_where_it_may_be():
    done = subprocess.run(["bash", "-c", SILENT], cwd=CHECKOUT, capture_output=True, text=True, check=True)

    assert done.stdout == "1 after 120 s\n"
    assert done.stderr == (
        'no reply in two minutes to "command": whoami: '
        "if it is no JSON, the dead letters of the commands have it and the reason\n"
    )


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("split URL URL", "missing a required argument: 'target'"),
        ("offer URL FILE more", "too many positional arguments"),
        ("offer URL no-such-file", "[Errno 2] No such file or directory: 'no-such-file'"),
        ("exchange URL URL", 'Could not connect to the endpoint URL: "http://127.0.0.1:9/"'),
        ("exchagne URL URL", "The commands of a stage by SQS alone"),
    ],
)
def test_a_wrong_use_of_the_program_gives_the_reason_and_the_usage(arguments, reason):
    place = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_DEFAULT_REGION": "us-east-1", "AWS_MAX_ATTEMPTS": "1"}
    environment = {**os.environ, **place, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}

    done = subprocess.run(
        [sys.executable, "examples/sqs/stage.py", *arguments.split()],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )

    assert done.returncode == 1
    assert done.stderr.startswith(reason)
    assert "Usage: stage.py exchange CONTROL_URL REPLY_URL" in done.stderr
    assert "Traceback" not in done.stderr
