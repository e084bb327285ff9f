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
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

import pytest

from signalbox.local.files import CHECKOUT
from signalbox.local.stage_folder import StageFolder
from tests import rabbitmq
from tests.docs.celery import OURS, RABBITMQ, SQS, Outcomes, Results, missing
from tests.integration.kombu.programs import working_folder
from tests.tiers.check_results import REPORTS
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
OF_THE_TESTS = (
    "pydantic",
    "redis",
    "sqlalchemy",
    "msgpack",
    "pycurl",
    "django",
    "cryptography",
    "freezegun",
    "moto",
    "azure-storage-blob",
)
RERUNS, TIMEOUT_SECONDS = 5, 120
# On `sqs://` much fails that it cannot do, after minutes and again: each test runs once, for a shorter time, and none
# after the stage has done all.
SQS_SECONDS = "30"
WANTED = 0.95


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker: its name, its URL and one at which there is none, and a folder in which programs find the stage."""

    name: str
    url: str
    closed_url: str
    folder: Path


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment with this checkout and what the suites import."""
    folder = tmp_path_factory.mktemp("environment")
    uv("venv", "--python", sys.executable, folder)
    own = [f"{name}=={version(name)}" for name in DISTRIBUTIONS]
    uv("pip", "install", "--python", folder, f"signalbox[kombu] @ {CHECKOUT.as_uri()}", *own, *PACKAGES, *OF_THE_TESTS)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Return the source distributions."""
    folder = tmp_path_factory.mktemp("archives")
    for name in DISTRIBUTIONS:
        words = ("download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d", folder, f"{name}=={version(name)}")
        subprocess.run([sys.executable, "-m", "pip", *words], check=True)  # noqa: S603 - our own words
    return {name: next(folder.glob(f"{name}-*.tar.gz")) for name in DISTRIBUTIONS}


@pytest.fixture(scope="module")
def brokers(
    deployed: dict[str, Any], stage_folder: StageFolder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Broker]]:
    keys = deployed["admin_credentials"]
    key = f"{quote(keys['access_key_id'], safe='')}:{quote(keys['secret_access_key'], safe='')}"
    port, closed = urlsplit(deployed["endpoint_url"]).port, rabbitmq.free_port()
    with rabbitmq.running(tmp_path_factory.mktemp("rabbitmq")) as server:
        urls = {
            OURS: ("signalbox://local", f"signalbox://local:{closed}"),
            RABBITMQ: (server.url, f"pyamqp://127.0.0.1:{closed}"),
            SQS: (f"sqs://{key}@127.0.0.1:{port}", f"sqs://{key}@127.0.0.1:{closed}"),
        }
        folders = {name: working_folder(tmp_path_factory.mktemp("broker"), stage_folder.path) for name in urls}
        yield [Broker(name, *found, folders[name]) for name, found in urls.items()]


@pytest.mark.parametrize("suite", DISTRIBUTIONS)
def test_what_passes_on_rabbitmq_passes_on_a_stage(
    suite: str, python: Path, archives: Mapping[str, Path], brokers: list[Broker]
) -> None:
    """At least 95 of 100 tests do. `python -m tests.docs.celery` writes the results into docs/celery.md."""
    with ThreadPoolExecutor() as pool:
        outcomes = pool.map(lambda broker: _outcomes(suite, python, archives[suite], broker), brokers)
    results: Results = dict(zip((one.name for one in brokers), outcomes, strict=True))

    (REPORTS / f"{suite} on brokers.json").write_text(json.dumps(results, indent=1))
    expected = sum(results[RABBITMQ].values())
    assert expected > 30
    assert len(missing(results)) <= (1 - WANTED) * expected, missing(results)


def _outcomes(suite: str, python: Path, archive: Path, broker: Broker) -> Outcomes:
    """Run a suite with a broker; return of each test whether it passed, skipped ones left out."""
    source = _unpacked(suite, archive, broker.folder)
    report, all_done = source / "report.xml", broker.folder.parent / f"{suite} is done on {OURS}"
    options = {"is_secure": False, "region": "us-east-1", "wait_time_seconds": 1}
    settings = {"broker_transport_options": options} if broker.name == SQS else {}
    (source / "integration-tests-config.json").write_text(json.dumps(settings))
    words = ["-m", "pytest", "-p", "broker_tests", "-p", "no:cacheprovider", "--rootdir", source, "-v"]
    words += ["--reruns", str(RERUNS), "--timeout", str(TIMEOUT_SECONDS)]
    where = ["-p", "celery.contrib.pytest", "t/integration"]
    if suite == "kombu":
        where = ["-c", os.devnull, "t/integration/test_cases.py"]
    command = [python, *words, "--junitxml", report, *where]
    REPORTS.mkdir(parents=True, exist_ok=True)
    # The log shows how far a long run is, and why a test failed.
    with (REPORTS / f"{suite} on {broker.name.strip(':/')}.log").open("wb") as log, _redis(broker.folder) as port:
        environment = {
            **os.environ,
            "PYTHONPATH": f"{source}{os.pathsep}{SUITES}",
            "TEST_BROKER": broker.url,
            "NO_BROKER": broker.closed_url,
            "TEST_BACKEND": f"redis://127.0.0.1:{port}/0",
            "REDIS_HOST": "127.0.0.1",
            "REDIS_PORT": str(port),
            **({"LIMIT_SECONDS": SQS_SECONDS, "UNTIL": str(all_done)} if broker.name == SQS else {}),
        }
        subprocess.run(command, cwd=source, env=environment, stdout=log, stderr=log, check=False)  # noqa: S603 - our own words
    if broker.name == OURS:
        all_done.touch()
    cases = ElementTree.parse(report).iter("testcase")  # noqa: S314 - pytest wrote it
    ran = [one for one in cases if one.find("skipped") is None]
    return {
        f"{one.get('classname')}::{one.get('name')}": one.find("failure") is None and one.find("error") is None
        for one in ran
    }


def _unpacked(suite: str, archive: Path, folder: Path) -> Path:
    """Return the folder of a suite's sources, with the subclasses of kombu's cases."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    source = folder / archive.name.removesuffix(".tar.gz")
    if suite == "kombu":
        shutil.copy(SUITES / "cases.py", source / "t" / "integration" / "test_cases.py")
    return source


@contextmanager
def _redis(folder: Path) -> Iterator[int]:
    """Run a Redis server as the backend of results; yield its port."""
    port = rabbitmq.free_port()
    words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with (folder / "redis.log").open("wb") as log:
        server = subprocess.Popen(words, stdout=log)  # noqa: S603 - our own words
    try:
        yield port
    finally:
        server.kill()
        server.wait()
