"""Commands that only ask load no package that their first output does not need; benchmarks/first_output.py times it."""

import json
import os
import subprocess
import sys

import pytest

from benchmarks.first_output import COMMANDS
from tests.cli.test_main import LOCAL

# Those that take longer to load than the rest of a command, or that only other commands need.
SLOW = ("aws_cdk", "httpx", "numpy", "pandas", "pyarrow", "pyspark", "websockets", "yaml")
PROBE = f"""
import json, sys
from signalbox.cli.main import main
loaded = {{}}
for words in json.loads(sys.argv[1]):
    before, sys.argv = set(sys.modules), ["signalbox", *words]
    try:
        main()
    except SystemExit:
        pass
    for name in {SLOW!r}:
        if name in sys.modules and name not in before:
            loaded[name] = " ".join(words)
print(json.dumps(loaded))
"""


@pytest.fixture
def stage(tmp_path):
    """Return the folder of a stage whose endpoint refuses each call: what is loaded is what the first call needs."""
    names = ("HistoryBucket", "HistoryDatabase", "HistoryTable", "SplitTable", "ExchangeTable", "ExchangePrefix")
    names += ("ExchangeControlQueueUrl", "SplitControlQueueUrl", "SplitReplyQueuePrefix", "RendezvousTable")
    names += ("ClientUserName", "ClientSecretArn", "BridgeFingerprints", "RendezvousPeers", "TemporaryQueuePrefix")
    outputs = dict.fromkeys(names, "x") | {"ActivitySources": json.dumps({})}
    (tmp_path / ".signalbox").mkdir()
    local = LOCAL | {"endpoint_url": "http://127.0.0.1:1", "outputs": outputs}
    (tmp_path / ".signalbox" / "local.json").write_text(json.dumps(local))
    return tmp_path


def test_commands_that_ask_load_no_slow_package_before_their_first_call(stage):
    asking = [[word.format(exchange="xpublic", queue="q_a") for word in words] for words in COMMANDS]
    asking = [words for words in asking if words[0] not in ("doctor", "history")]  # the examination; Spark

    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", PROBE, json.dumps(asking)],
        cwd=stage,
        env={**os.environ, "AWS_MAX_ATTEMPTS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(done.stdout.splitlines()[-1]) == {}
