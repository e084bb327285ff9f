"""Processor times of the functions' imports, in new interpreters that have only what is deployed."""

import shutil
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.shared.imports import BOTO3, BOTOCORE, ImportTimes, import_function
from signalbox.errors import UnavailableError
from signalbox.local.files import CHECKOUT

# Prints the folders of the code and of the layer of the checkout in which it runs, built for this machine.
BUILD = """
from stacks.settings.config import Config
from stacks.shared import packaging
print(packaging.code(Config(local=True)).path)
print(packaging.packages(local=True).path / "python")
"""


@dataclass(frozen=True, slots=True)
class Assets:
    """What one version deploys, on this machine: the folders of its code and of its layer."""

    name: str
    code: Path
    layer: Path

    def without_bytecode(self, folder: Path) -> "Assets":
        """Return a copy in a folder that lacks the bytecode."""
        code, layer = folder / "code", folder / "layer"
        for source, copy in ((self.code, code), (self.layer, layer)):
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        return Assets(f"{self.name}, without bytecode", code, layer)


@dataclass(frozen=True, slots=True)
class Import:
    """The import of one function from the assets of one version: processor milliseconds, round by round."""

    function: str
    assets: str
    sdk: list[float] = field(default_factory=list)
    rest: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Return the median of the rounds."""
        return statistics.median(map(sum, zip(self.sdk, self.rest, strict=True)))

    @property
    def median_of_rest(self) -> float:
        """Return the median of the rounds without the SDK."""
        return statistics.median(self.rest)


def assets_of(name: str, checkout: Path) -> Assets:
    """Build the assets of a checkout after its setup."""
    command = [str(checkout / ".venv" / "bin" / "python"), "-c", BUILD]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnavailableError(f"the assets of {checkout} could not be built:\n{done.stderr[-2000:]}")
    code, layer = done.stdout.split()
    return Assets(name, Path(code), Path(layer))


def functions(code: Path = CHECKOUT) -> list[str]:
    """Return the names of all functions, such as `rendezvous.offer`."""
    handlers = (path for path in sorted((code / "lambdas").glob("*/*.py")) if "def handler(" in path.read_text())
    return [f"{path.parent.name}.{path.stem}" for path in handlers]


def measure(
    sides: Sequence[Assets], runtime: Path, *, rounds: int, say: Callable[[str], None]
) -> Mapping[str, list[Import]]:
    """Return the imports of each function that all sides have; the sides alternate, and a first round warms up."""
    common = [name for name in functions() if all(name in functions(side.code) for side in sides)]
    found = {name: [Import(name, side.name) for side in sides] for name in common}
    sdks = {name: _sdk_of(sides[0], runtime, name) for name in common}
    for number in range(rounds + 1):
        for name in common:
            say(f"round {number} of {rounds}: {name}")
            for side, taken in list(zip(sides, found[name], strict=True))[:: 1 if number % 2 else -1]:
                times = _import(side, runtime, name, sdks[name])
                if number:
                    taken.sdk.append(times.sdk)
                    taken.rest.append(times.rest)
    return found


def _sdk_of(side: Assets, runtime: Path, name: str) -> str:
    """Return the name of the module that loads the part of the SDK that the function uses."""
    return BOTO3 if _import(side, runtime, name, BOTOCORE).has_boto3 else BOTOCORE


def _import(side: Assets, runtime: Path, name: str, sdk: str) -> ImportTimes:
    return import_function(name, code=side.code, layer=side.layer, runtime=runtime, sdk=sdk)
