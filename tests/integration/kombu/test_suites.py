"""kombu's and Celery's own integration tests, from their source distributions, on a stage, RabbitMQ and `sqs://`.

RabbitMQ and Redis are Debian's packages `rabbitmq-server` and `redis-server`.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

import pytest

from signalbox.local.check_results import REPORTS
from signalbox.local.files import CHECKOUT
from signalbox.local.stage_folder import StageFolder
from tests import rabbitmq
from tests.integration.kombu.programs import working_folder
from tests.wheels import uv

pytestmark = [
    pytest.mark.emulator,
    pytest.mark.release,
    pytest.mark.skipif(
        not (rabbitmq.is_installed() and shutil.which("redis-server")),
        reason="needs the programs of `apt-get install rabbitmq-server redis-server`",
    ),
]

SUITES = Path(__file__).with_name("suites")
DISTRIBUTIONS = ("kombu", "celery")
PACKAGES = (
    "pytest>=9.1,<9.2",
    "pytest-rerunfailures",
    "pytest-timeout",
    "pytest-subtests",
    "pytest-click",
    "pytest-order",
)
OF_THE_TESTS = ("pydantic", "redis", "sqlalchemy", "msgpack", "pycurl", "django", "cryptography", "freezegun", "moto")
OURS, RABBITMQ, SQS = "Signalbox", "RabbitMQ", "sqs://"
WANTED = 0.95
TIMEOUT_SECONDS = 120
Outcomes = Mapping[str, bool]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment with this checkout and what the suites import."""
    folder = tmp_path_factory.mktemp("environment")
    uv("venv", "--python", sys.executable, folder)
    own = [f"{name}=={version(name)}" for name in DISTRIBUTIONS]
    uv("pip", "install", "--python", folder, f"signalbox[kombu] @ {CHECKOUT.as_uri()}", *own, *PACKAGES, *OF_THE_TESTS)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory, stage_folder: StageFolder) -> Mapping[str, Path]:
    """Return the unpacked source distributions; programs find the stage there."""
    folder = working_folder(tmp_path_factory.mktemp("sources"), stage_folder.path)
    for name in DISTRIBUTIONS:
        words = ("download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d", folder, f"{name}=={version(name)}")
        subprocess.run([sys.executable, "-m", "pip", *words], check=True)  # noqa: S603 - our own words
    found = {}
    for archive in folder.glob("*.tar.gz"):
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")
        found[archive.name.partition("-")[0]] = folder / archive.name.removesuffix(".tar.gz")
    shutil.copy(SUITES / "cases.py", found["kombu"] / "t" / "integration" / "test_cases.py")
    return found


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    port = rabbitmq.free_port()
    words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with (tmp_path_factory.mktemp("redis") / "log").open("wb") as log:
        server = subprocess.Popen(words, stdout=log)  # noqa: S603 - our own words
    yield port
    server.kill()
    server.wait()


@pytest.fixture(scope="module")
def brokers(deployed: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[str, str]]]:
    """Return of each broker the URL and one at which there is none."""
    keys = deployed["admin_credentials"]
    key = f"{quote(keys['access_key_id'], safe='')}:{quote(keys['secret_access_key'], safe='')}"
    port, closed = urlsplit(deployed["endpoint_url"]).port, rabbitmq.free_port()
    with rabbitmq.running(tmp_path_factory.mktemp("rabbitmq")) as url:
        yield {
            OURS: ("signalbox://local", f"signalbox://local:{closed}"),
            RABBITMQ: (url, f"pyamqp://127.0.0.1:{closed}"),
            SQS: (f"sqs://{key}@127.0.0.1:{port}", f"sqs://{key}@127.0.0.1:{closed}"),
        }


@pytest.mark.parametrize("suite", DISTRIBUTIONS)
def test_what_passes_on_rabbitmq_passes_on_a_stage(
    suite: str, python: Path, sources: Mapping[str, Path], redis: int, brokers: Mapping[str, tuple[str, str]]
) -> None:
    """At least 95 of 100 do. The reasons of the others are in docs/celery.md; the report has the table."""
    results = {name: _outcomes(suite, python, sources[suite], redis=redis, urls=urls) for name, urls in brokers.items()}

    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / f"{suite} on brokers.json").write_text(json.dumps(results, indent=1))
    expected = {name for name, passed in results[RABBITMQ].items() if passed}
    missing = sorted(name for name in expected if not results[OURS].get(name))
    assert len(expected) > 30
    assert len(missing) <= (1 - WANTED) * len(expected), missing


def _outcomes(suite: str, python: Path, source: Path, *, redis: int, urls: tuple[str, str]) -> Outcomes:
    """Run a suite with a broker; return of each test whether it passed, skipped ones left out."""
    report = source / "report.xml"
    report.unlink(missing_ok=True)
    options = {"is_secure": False, "region": "us-east-1", "wait_time_seconds": 1}
    settings = {"broker_transport_options": options} if urls[0].startswith("sqs") else {}
    (source / "integration-tests-config.json").write_text(json.dumps(settings))
    environment = {
        **os.environ,
        "PYTHONPATH": f"{source}{os.pathsep}{SUITES}",
        "TEST_BROKER": urls[0],
        "NO_BROKER": urls[1],
        "TEST_BACKEND": f"redis://127.0.0.1:{redis}/0",
        "REDIS_HOST": "127.0.0.1",
        "REDIS_PORT": str(redis),
    }
    words = ["-m", "pytest", "-p", "broker_tests", "-p", "no:cacheprovider", "--reruns", "5", "--rootdir", source]
    words += ["--timeout", str(TIMEOUT_SECONDS), "--junitxml", report, "-q"]
    where = ["-c", os.devnull, "t/integration/test_cases.py"] if suite == "kombu" else ["t/integration"]
    subprocess.run([python, *words, *where], cwd=source, env=environment, check=False)  # noqa: S603 - our own words
    cases = ElementTree.parse(report).iter("testcase")  # noqa: S314 - pytest wrote it
    ran = [one for one in cases if one.find("skipped") is None]
    return {
        f"{one.get('classname')}::{one.get('name')}": one.find("failure") is None and one.find("error") is None
        for one in ran
    }
