"""The shell functions of `examples/sqs/stage.sh` with an AWS CLI whose calls take no time."""

import subprocess

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
