"""Commands that only ask load no package that their first output does not need."""

import json
import os
import subprocess
import sys

import pytest

REFUSING = "http://127.0.0.1:1"  # a port that no program listens on
# What the first call of a command needs of a stage.
OUTPUTS = ("HistoryBucket", "HistoryDatabase", "HistoryTable", "SplitTable", "ExchangeTable", "ExchangePrefix")
OUTPUTS += ("ExchangeControlQueueUrl", "SplitControlQueueUrl", "SplitReplyQueueUrl", "RendezvousTable")
OUTPUTS += ("ClientUserName", "BridgeFingerprints", "TemporaryQueuePrefix")
REFUSED = {
    "endpoint_url": REFUSING,
    "region": "eu-west-1",
    "rendezvous_url": f"{REFUSING}/rendezvous/",
    "admin_credentials": {"access_key_id": "AKIA1", "secret_access_key": "none"},
    "outputs": dict.fromkeys(OUTPUTS, "x"),
}
"""The local.json of a stage that refuses each call: a command does what comes before its first call, and ends."""

# Every command that only asks; `{exchange}` and `{queue}` are those of the stage.
COMMANDS = (
    ("--help",),
    ("--version",),
    ("local", "status"),
    ("doctor",),
    ("status",),
    ("status", "{exchange}"),
    ("exchange", "list"),
    ("queue", "list"),
    ("bindings", "{exchange}"),
    ("user", "list"),
    ("grant", "list"),
    ("grant", "explain", "source", "speed.a"),
    ("group", "list", "{exchange}"),
    ("split", "list"),
    ("split", "status"),
    ("split", "registry", "list"),
    ("rendezvous", "stats"),
    ("rendezvous", "credentials"),
    ("keep", "list"),
    ("trace", "00000000-0000-0000-0000-000000000000"),
    ("history", "query", "SELECT 1"),
)
# Those that take longer to load than the rest of a command, that only other commands need, or that print a table.
SLOW = {"aws_cdk", "httpx", "numpy", "pandas", "pyarrow", "pyspark", "rich", "websockets", "yaml"}
ALLOWED = {"--help": {"rich"}, "local": {"rich"}}
# Of all commands' modules, a command loads those of its own capability.
CAPABILITIES = {
    "--help": set(),
    "--version": set(),
    "local": {"local", "doctor"},
    "doctor": {"doctor"},
    "status": {"exchange"},
    "exchange": {"exchange", "live"},
    "queue": {"exchange"},
    "bindings": {"exchange"},
    "user": {"exchange"},
    "grant": {"live", "exchange"},
    "group": {"live", "exchange"},
    "split": {"splitting"},
    "rendezvous": {"rendezvous"},
    "keep": {"history", "exchange"},
    "trace": {"history", "exchange"},
    "history": {"history"},
}
GROUPS = set().union(*CAPABILITIES.values()) | {"deploy", "destroy", "verify"}
PROBE = """
import sys
at_start = set(sys.modules)
import json, os
from signalbox.cli.main import main

def end():
    os.write(1, json.dumps(sorted(set(sys.modules) - at_start)).encode())
    os._exit(0)

class Ending:
    def write(self, text):
        end()
    def isatty(self):
        return False

if sys.argv[1] == "first":
    sys.stdout = sys.stderr = Ending()
else:
    sys.stdout = sys.stderr = open(os.devnull, "w")
sys.argv = ["signalbox", *sys.argv[2:]]
try:
    main()
finally:
    end()
"""
# They go on after their progress line: with the examination of this machine, and with Spark.
SLOWER = ("doctor", "history")


@pytest.fixture
def stage(tmp_path):
    """Return the folder of a stage whose endpoint refuses each call: what is loaded is what the first call needs."""
    (tmp_path / ".signalbox").mkdir()
    (tmp_path / ".signalbox" / "local.json").write_text(json.dumps(REFUSED))
    return tmp_path


def loaded(words, folder):
    """Return the modules that a command has loaded at its end; for slower ones, at its first output.

    Those that the interpreter loads at each start, as Debian's does, are not the command's.
    """
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", PROBE, "first" if words[0] in SLOWER else "end", *words],
        cwd=folder,
        env={**os.environ, "AWS_MAX_ATTEMPTS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_that_asks_loads_only_what_its_first_output_needs(words, stage):
    capability = " ".join(words[:2]) if " ".join(words[:2]) in CAPABILITIES else words[0]

    modules = loaded([word.format(exchange="xpublic", queue="q_a") for word in words], stage)

    assert modules & SLOW <= ALLOWED.get(capability, set())
    groups = {name.split(".")[2] for name in modules if name.startswith("signalbox.cli.")}
    assert groups & GROUPS <= CAPABILITIES[capability]


def test_the_help_imports_nothing_that_it_does_not_print_from(stage):
    """Of packages, Typer and what it prints with; of the command's own modules, the list of commands and the output."""
    packages = {"typer", "rich", "markdown_it", "mdurl", "pygments", "attr", "shellingham", "annotated_doc"}
    shared = ("lazy_group", "option_groups", "output", "signals")
    own = {"signalbox", "signalbox.errors", *(f"signalbox.cli{name}" for name in ("", ".main", ".commands", ".shared"))}

    modules = loaded(("--help",), stage)

    assert {name for name in modules if name.split(".")[0] == "signalbox"} == own | {
        f"signalbox.cli.shared.{name}" for name in shared
    }
    others = {name.split(".")[0] for name in modules} - {"signalbox"}
    assert {name for name in others if name not in sys.stdlib_module_names and not name.startswith("_")} <= packages


def test_the_doctor_says_that_it_begins_before_it_loads_a_client_of_aws(stage):
    assert loaded(("doctor",), stage) & {"boto3", "botocore"} == set()
