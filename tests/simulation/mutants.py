"""Planted single faults, of which the simulation must find nearly all: `python -m tests.simulation.mutants`.

Each is one replacement in one module of the product, which is made while that module is loaded: `planted.toml` has
them. Results are kept in `.signalbox/reports/mutants.jsonl`, and a run continues with the mutants that have none.
"""

import argparse
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

RESULTS = Path(".signalbox/reports/mutants.jsonl")
SECONDS = 120
VARIABLE = "SIGNALBOX_MUTANT"


@dataclass(frozen=True)
class Mutant:
    """A fault: a text of a module that occurs once, and what replaces it. The simulation of `capability` finds it.

    `allowed` is a sentence of the pages that allows everything the fault does: then it is not to be found.
    """

    name: str
    capability: str
    module: str
    old: str
    new: str
    allowed: str = ""


def _planted() -> tuple[Mutant, ...]:
    faults = tomllib.loads(Path(__file__).with_name("planted.toml").read_text(encoding="utf-8"))
    return tuple(Mutant(capability=capability, **one) for capability, found in faults.items() for one in found)


MUTANTS = _planted()


class _Planter(MetaPathFinder):
    """The finder of the one module that is changed."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, name: str, path: Sequence[str] | None, _target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self.mutant.module:
            return None
        spec = PathFinder.find_spec(name, path)
        assert spec is not None, name
        assert spec.origin is not None, name
        spec.loader = _Changed(name, spec.origin, self.mutant)
        return spec


class _Changed(SourceFileLoader):
    def __init__(self, name: str, path: str, mutant: Mutant) -> None:
        super().__init__(name, path)
        self.mutant = mutant

    def get_code(self, name: str) -> CodeType:
        return compile(changed(self.mutant), self.path, "exec", dont_inherit=True)


def changed(mutant: Mutant) -> str:
    """Return the source of a mutant's module with its fault."""
    source = Path(mutant.module.replace(".", "/") + ".py").read_text(encoding="utf-8")
    assert source.count(mutant.old) == 1, f"{mutant.name}: its text occurs {source.count(mutant.old)} times"
    return source.replace(mutant.old, mutant.new)


def plant() -> None:
    """Plant the fault that the environment names, before the product is imported."""
    name = os.environ.get(VARIABLE)
    if name:
        (mutant,) = (one for one in MUTANTS if one.name == name)
        sys.meta_path.insert(0, _Planter(mutant))


def main() -> None:
    """Run the mutants that were not found in as much time, and print how many are found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--of", help="the capability; none: all")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="the processor time for each")
    options = parser.parse_args()
    known = results()
    for mutant in MUTANTS:
        if not _is_known(known.get(mutant.name), options.seconds) and options.of in (None, mutant.capability):
            known[mutant.name] = _kept(mutant, options.seconds)
            print(f"{'found' if known[mutant.name]['found'] else 'NOT FOUND'}: {mutant.name}", flush=True)
    faults = [mutant for mutant in MUTANTS if not mutant.allowed]
    tried = [known[mutant.name] for mutant in faults if mutant.name in known]
    print(f"{sum(bool(one['found']) for one in tried)} of {len(tried)} mutants are found, and there are {len(faults)}")


def _is_known(result: dict[str, Any] | None, seconds: float) -> bool:
    return result is not None and (bool(result["found"]) or result["seconds"] >= seconds)


def results() -> dict[str, dict[str, Any]]:
    """Return the results that are kept, by the mutants' names."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    return {one["name"]: one for one in map(json.loads, lines)}


def _kept(mutant: Mutant, seconds: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.simulation", "--of", mutant.capability]
    command += ["--until-broken", "--short", "--rough", "--first", "1"]
    done = subprocess.run(  # noqa: S603 - our own program
        [*command, "--seconds", str(seconds)],
        env=os.environ | {VARIABLE: mutant.name},
        capture_output=True,
        text=True,
        check=False,
    )
    is_found = done.returncode == 1 and "BROKEN" in done.stdout
    result = {"name": mutant.name, "found": is_found, "seconds": seconds, "output": done.stdout[-600:]}
    if not is_found:
        result["error"] = done.stderr[-600:]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(result) + "\n")
    return result


if __name__ == "__main__":
    main()
