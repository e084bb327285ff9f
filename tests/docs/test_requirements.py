"""The requirements: what is imported is declared, and a package has the same bounds wherever it is required."""

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from importlib.metadata import packages_distributions

from tests.docs.markdown import ROOT

PROJECTS = (ROOT / "pyproject.toml", *sorted((ROOT / "packages").glob("*/pyproject.toml")))
FILES = (ROOT / "requirements.txt", ROOT / "lambdas" / "requirements.in")
CODE = ("app.py", "signalbox", "packages", "lambdas", "stacks", "glue_jobs", "tests", "benchmarks")
REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)(\[.*\])?(?P<bounds>[^;#]*)")
# Both bounds hold: the first is what the command works with, the second the version of the stubs.
TWICE = {"boto3"}
# Of the distributions that have a module, those with a part that this repository never imports.
ALSO = {"aws-cdk.asset-awscli-v1", "aws-cdk.asset-node-proxy-agent-v6", "aws-cdk.cloud-assembly-schema"}


def requirements() -> Iterator[str]:
    for path in PROJECTS:
        project = tomllib.loads(path.read_text())
        yield from project["build-system"]["requires"]
        yield from project["project"]["dependencies"]
        for extra in project["project"].get("optional-dependencies", {}).values():
            yield from extra
    for path in FILES:
        yield from (line for line in path.read_text().splitlines() if line and line[0] not in "#-")


def declared() -> dict[tuple[str, str], set[str]]:
    """Return the bounds of each required package, by its normalized name and the marker of its environments."""
    found = defaultdict(set)
    for text in requirements():
        parsed = REQUIREMENT.match(text)
        assert parsed, text
        marker = text.partition("#")[0].partition(";")[2].strip().replace("'", '"')
        found[normalized(parsed["name"]), marker].add(parsed["bounds"].strip())
    return found


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported() -> set[str]:
    """Return the top-level modules that any module of the repository imports."""
    paths = [
        path for name in CODE for path in ((ROOT / name).rglob("*.py") if (ROOT / name).is_dir() else [ROOT / name])
    ]
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text()))]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names)


def test_every_imported_package_of_this_environment_is_declared():
    """Others are imported in environments of their own, such as the emulator's."""
    distributions, stubs = packages_distributions(), "mypy-boto3-"
    needed = {name for module in imported() for name in distributions.get(module, ())} - ALSO
    names = {name for name in map(normalized, needed) if not name.startswith(stubs)}

    assert names - {name for name, _ in declared()} - {"signalbox"} == set()
    assert len(names) > 30


def test_a_package_has_one_pair_of_bounds():
    assert {name for (name, _), bounds in declared().items() if len(bounds) > 1} == TWICE


def test_no_file_of_requirements_names_a_registry():
    texts = [path.read_text() for path in (*PROJECTS, *FILES)]

    assert not [line for text in texts for line in text.splitlines() if "index" in line and "://" in line]
