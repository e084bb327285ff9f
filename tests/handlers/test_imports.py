"""The packages that a cold start of each function may load; another one fails the test."""

import json
import subprocess
import sys

import pytest

from signalbox.local.files import CHECKOUT

SDK = {"boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six", "urllib3"}
ALL = SDK | {"lambdas", "signalbox", "aws_lambda_powertools", "typing_extensions"}
# Of the filter engines only RE2 is imported at the start; the first filter that needs `regex` or `jq` imports it.
ALLOWED = {
    **dict.fromkeys(
        (f"rendezvous.{name}" for name in ("offer", "poll", "answer", "client", "page", "sweep")), ALL | {"maxminddb"}
    ),
    **dict.fromkeys(("splitting.split", "splitting.control"), ALL | {"re2"}),
    **dict.fromkeys(("exchange.route", "exchange.control"), ALL),
    **dict.fromkeys((f"live.{name}" for name in ("connect", "receive", "session", "overview", "deliver", "page")), ALL),
    "history.drain": ALL,
}
# The SDK imports these if they are installed; they do not ship (lambdas/requirements.lock).
NOT_SHIPPED = {"certifi", "awscrt"}
# Modules that the interpreter loads by itself belong to the environment: hooks of editable installs, coverage.
LOADED = """
import json, sys
before = {name.partition(".")[0] for name in sys.modules}
import lambdas.%s
after = {name.partition(".")[0] for name in sys.modules}
print(json.dumps(sorted(after - before - sys.stdlib_module_names - {"__mp_main__"})))
"""


def packages_of(handler: str) -> set[str]:
    command = [sys.executable, "-c", LOADED % handler]
    done = subprocess.run(command, cwd=CHECKOUT, env={}, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("handler", ALLOWED)
def test_a_cold_start_loads_allowed_packages_only(handler):
    loaded = packages_of(handler)

    assert {"lambdas", "signalbox", "boto3"} <= loaded
    assert loaded - NOT_SHIPPED <= ALLOWED[handler]
