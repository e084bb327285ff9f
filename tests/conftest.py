"""Fixtures and settings of all tests: Hypothesis, test order, and a deployed stage."""

import os
import secrets
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from signalbox.clients.deployment import LocalDeployment, local_deployment
from signalbox.local import cdk, stage
from signalbox.local.emulator import lifecycle
from signalbox.local.stage_folder import StageFolder
from tests import garbage, preparation
from tests.environment import settle
from tests.identity import provider as identity
from tests.java import parts
from tests.kubernetes.cluster import Namespace, Server
from tests.sharing import SHARED
from tests.tiers.tiers import IN_TEST

settle()


# No deadline: the duration of an example depends on the machine's load more than on the code. In CI the examples are
# the same in every run, so that a change has caused a new failure; elsewhere they are random.
REPEATED = {"deadline": None, "derandomize": "CI" in os.environ}
settings.register_profile("release", **REPEATED)
# Enough to see a broken property; `make release` tries all examples, with the option --hypothesis-profile.
settings.register_profile("check", max_examples=20, **REPEATED)
settings.load_profile("check")


garbage.postpone()


# The seed of fault injection: drawn anew in CI, so that each run meets other faults, and the same elsewhere.
SEED_VARIABLE, USUAL_SEED, SEEDS = "SIGNALBOX_FAULTS_SEED", 1, 1_000_000

SERVER = pytest.StashKey[Server]()
LOG_LINES = 40


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `make`."""
    text = "fail, instead of skipping tests, where what they need cannot be prepared"
    parser.addoption("--prepared", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Choose the tests of `pytest` alone, and the seed of fault injection; parallel test processes inherit both."""
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.markexpr:
        config.option.markexpr = IN_TEST
    os.environ.setdefault(SEED_VARIABLE, str(secrets.randbelow(SEEDS) if "CI" in os.environ else USUAL_SEED))


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Return the seed of fault injection, with which a failure can be repeated, and the chosen markers."""
    return [
        f"fault injection: {SEED_VARIABLE}={os.environ[SEED_VARIABLE]}",
        f"markers: {config.option.markexpr or 'all'}",
    ]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Prepare the tools of the tests, and collect no garbage among modules and tests."""
    if not session.config.option.collectonly:
        preparation.prepare(session.items, is_required=session.config.getoption("prepared"))
    garbage.begin()


@pytest.fixture(scope="session")
def stage_folder(tmp_path_factory: pytest.TempPathFactory) -> StageFolder:
    """Return the folder of the deployed stage."""
    return StageFolder(tmp_path_factory.mktemp("stage"))


@pytest.fixture(scope="session", autouse=True)
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the parallel test processes."""
    own = tmp_path_factory.getbasetemp()
    SHARED.folder = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    return SHARED.folder


@pytest.fixture(scope="session")
def assembly(shared_folder: Path) -> Path:
    """Return the cloud assembly of a local stage."""

    def synthesize() -> str:
        cdk.synthesize(shared_folder / "assembly", context=stage.local_context([]), say=lambda _: None)
        return str(shared_folder / "assembly")

    return Path(SHARED.get("assembly.txt", synthesize))


@pytest.fixture(scope="session")
def deployed(stage_folder: StageFolder, assembly: Path) -> Iterator[dict[str, Any]]:
    """Return the content of local.json of a stage that ends with the test run, even if that is killed."""
    with _deployed(stage_folder, assembly) as local:
        yield local


@pytest.fixture(scope="session")
def faults() -> int:
    """Return the seed of fault injection of this test run."""
    return int(os.environ[SEED_VARIABLE])


@pytest.fixture(scope="session")
def faulty_stage_folder(tmp_path_factory: pytest.TempPathFactory) -> StageFolder:
    """Return the folder of the stage with fault injection."""
    return StageFolder(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="session")
def deployed_with_faults(faulty_stage_folder: StageFolder, assembly: Path, faults: int) -> Iterator[dict[str, Any]]:
    """Return the content of local.json of a second stage, whose emulator injects faults."""
    with _deployed(faulty_stage_folder, assembly, faults=faults) as local:
        yield local


@contextmanager
def _deployed(stage_folder: StageFolder, assembly: Path, *, faults: int | None = None) -> Iterator[dict[str, Any]]:
    """Provide a stage that ends with the context, even if the test run is killed."""
    with lifecycle.lifeline() as lifeline:
        try:
            yield stage.up(stage_folder, port=0, lifeline=lifeline, assembly=assembly, faults=faults)
        finally:
            stage.down(stage_folder)


@pytest.fixture(scope="session")
def real_parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[parts.Parts]:
    """Run DynamoDB Local and ElasticMQ."""
    with parts.running(tmp_path_factory.mktemp("parts")) as found:
        yield found


@pytest.fixture(scope="session")
def deployment(deployed: dict[str, Any], stage_folder: StageFolder) -> LocalDeployment:
    """Return the same stage as a deployment of the CLI."""
    return local_deployment(deployed, folder=stage_folder.path)


@pytest.fixture(scope="session")
def identity_provider() -> Iterator[identity.IdentityProvider]:
    """Run a certified OpenID provider on loopback, with test users."""
    with identity.running() as provider:
        yield provider


@pytest.fixture(scope="session")
def kubernetes(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Server]:
    """Run a Kubernetes cluster that ends with the test run, even if that is killed."""
    server = pytestconfig.stash[SERVER] = Server(tmp_path_factory.mktemp("kubernetes") / "cluster")
    try:
        yield server
    finally:
        server.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of the cluster's log with a test that failed on it."""
    report = yield
    server = item.config.stash.get(SERVER, None)
    if report.failed and server is not None and isinstance(item, pytest.Function) and "kubernetes" in item.fixturenames:
        lines = server.log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        report.sections.append(("the Kubernetes cluster's log", "\n".join(lines)))
    return report


@pytest.fixture
def namespace(kubernetes: Server) -> Iterator[Namespace]:
    """Return a namespace of the cluster; its deletion goes on while the next test runs."""
    namespace = kubernetes.new_namespace()
    yield namespace
    namespace.remove()
