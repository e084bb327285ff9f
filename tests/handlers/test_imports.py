"""The packages and modules that a cold start of each function may load."""

import json
import subprocess
import sys
from functools import cache

import pytest

from signalbox.local.files import CHECKOUT

# botocore's clients alone: boto3 would add a fifth to the time of an import.
SDK = {"botocore", "jmespath", "dateutil", "six", "urllib3"}
OURS = {"lambdas", "signalbox", "aws_lambda_powertools", "typing_extensions"}
# No filter engine is imported at the start; the first filter imports or starts its own.
ALLOWED = SDK | OURS
OF_RENDEZVOUS = ALLOWED | {"maxminddb"}
CAPABILITIES = {"rendezvous", "splitting", "exchange", "live", "sarracenia"}
LIVE = {"live", "exchange", "sarracenia"}
# The capabilities whose modules each function may load, and the maximum number of modules, without packages. A higher
# number makes the cold start of that function slower.
BUDGET = {
    "rendezvous.offer": ({"rendezvous"}, 41),
    "rendezvous.proxies": ({"rendezvous"}, 50),
    "rendezvous.clients": ({"rendezvous"}, 48),
    "rendezvous.forward": ({"rendezvous"}, 49),
    "rendezvous.sweep": ({"rendezvous"}, 46),
    "splitting.split": ({"splitting"}, 64),
    "splitting.control": ({"splitting"}, 129),
    "exchange.route": (LIVE, 118),
    "exchange.control": (LIVE, 151),
    "live.connect": (LIVE, 58),
    "live.receive": (LIVE, 56),
    "live.session": (LIVE, 121),
    "live.deliver": (LIVE, 96),
    "live.page": (LIVE, 30),
    # It summarizes every capability.
    "live.overview": (CAPABILITIES, 128),
    "history.drain": (set(), 13),
}
# The SDK imports these if they are installed; they do not ship (lambdas/requirements.lock).
NOT_SHIPPED = {"certifi", "awscrt"}
# Packages that the interpreter loads by itself belong to the environment: hooks of editable installs, coverage.
LOADED = """
import json, sys
before = {name.partition(".")[0] for name in sys.modules}
import lambdas.%s
after = {name.partition(".")[0] for name in sys.modules}
ours = [name for name in sys.modules if name.partition(".")[0] in ("lambdas", "signalbox")]
print(json.dumps({
    "packages": sorted(after - before - sys.stdlib_module_names - {"__mp_main__"}),
    "modules": [name for name in ours if not sys.modules[name].__file__.endswith("__init__.py")],
}))
"""


@cache
def loaded_by(handler: str) -> dict[str, list[str]]:
    """Return the packages, and the modules of ours without packages, that the import of a handler loads."""
    command = [sys.executable, "-c", LOADED % handler]
    done = subprocess.run(command, cwd=CHECKOUT, env={}, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    return json.loads(done.stdout)


@pytest.mark.parametrize("handler", BUDGET)
def test_a_cold_start_loads_allowed_packages_only(handler):
    loaded = set(loaded_by(handler)["packages"])

    assert {"lambdas", "signalbox", "botocore"} <= loaded
    assert loaded - NOT_SHIPPED <= (OF_RENDEZVOUS if handler.startswith("rendezvous.") else ALLOWED)


def test_every_function_has_a_budget():
    handlers = {path for path in (CHECKOUT / "lambdas").glob("*/*.py") if "def handler(" in path.read_text()}

    assert {f"{path.parent.name}.{path.stem}" for path in handlers} == set(BUDGET)


@pytest.mark.parametrize("handler", BUDGET)
def test_a_function_loads_modules_of_its_own_capability_within_its_budget(handler):
    capabilities, number = BUDGET[handler]

    loaded = loaded_by(handler)["modules"]

    assert {part for name in loaded for part in name.split(".")[1:3]} & CAPABILITIES <= capabilities
    assert len(loaded) <= number


def test_the_connection_to_kubernetes_clusters_is_loaded_only_for_a_stage_with_clusters():
    package = "signalbox.aws.splitting.kubernetes."

    loaded = {name for name in loaded_by("splitting.control")["modules"] if name.startswith(package)}

    assert loaded <= {package + "api"}
