"""The command `python -m tests.simulation [SEED …]`: it repeats seeds, or runs new ones for some seconds."""

import argparse
import dataclasses
import itertools
import math
import os
import secrets
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.docs.markdown import ROOT, with_section
from tests.simulation import mutants

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulation.run import Result


BEGIN, END = "<!-- steps: written by python -m tests.simulation --tables -->", "<!-- /steps -->"
STATED = -1


def main() -> int:
    """Run the command line, and return 1 if a guarantee is broken."""
    options = _options()
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is a part of a run
        command = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, command, os.environ | _ENVIRONMENT)  # noqa: S606 - itself
    mutants.plant()
    _thaw()
    from tests.simulation import scopes  # noqa: PLC0415 - after the fault is planted

    chosen = options.of or list(scopes.SCOPES)
    if options.tables:
        for scope, faults, most_states, _ in scopes.STATED:
            if scope in chosen and not faults:
                steps = scopes.explored(scope, most_states, faults).steps
                text = with_section(_page(scope).read_text(), BEGIN, END, f"{scopes.table(steps)}\n")
                _page(scope).write_text(text)
        return 0
    if options.compare:
        return 0 if all(map(scopes.are_ends_kept, chosen)) else 1
    if options.explore == STATED:
        return 0 if scopes.are_all_explored(chosen, table_of_page) else 1
    if options.explore:
        found_in = partial(scopes.explored, faults=options.faults, most_changes=options.changes)
        searches = {scope: found_in(scope, options.explore) for scope in chosen}
        found = [scopes.is_kept(scope, search, is_whole=True, has_table=True) for scope, search in searches.items()]
        return 0 if all(found) else 1
    return _run_seeds(options)


def _thaw() -> None:
    """Let the product's frozen dataclasses be mutable, with their hashes: a frozen one takes twice as long to make."""
    made = dataclasses.dataclass

    def thawed(kind: Any = None, /, *, frozen: bool = False, eq: bool = True, **options: Any) -> Any:
        return made(kind, eq=eq, unsafe_hash=frozen and eq, **options)

    dataclasses.dataclass = thawed  # type: ignore[assignment]


def table_of_page(scope: str) -> str:
    """Return the table of steps on the page of a scope."""
    return _page(scope).read_text().partition(BEGIN)[2].partition(END)[0].strip()


def _page(scope: str) -> "Path":
    return ROOT / "docs" / f"{scope}.md"


def _run_seeds(options: argparse.Namespace) -> int:
    from tests.simulation import results, run, shrink  # noqa: PLC0415 - after the fault is planted

    hours = seconds = 0.0
    broken = False
    if not options.seeds:
        print(f"seeds from {options.first} on", flush=True)
    for seed in options.seeds or itertools.count(options.first):
        if not options.seeds and (seconds > options.seconds or (broken and options.until_broken)):
            break
        if (options.short and run.is_long(seed)) or (options.rough and run.is_calm(seed)):
            continue
        for capability in options.of or run.CAPABILITIES:
            result = run.run(capability, seed, has_story=options.story)
            hours, seconds = hours + result.hours, seconds + result.seconds
            broken = broken or bool(result.broken)
            if not os.environ.get(mutants.VARIABLE):
                results.keep(result)
            if result.broken and options.shrink:
                result = shrink.shrunk(result)
            _print(result, run.clock, result.story if options.story else shrink.story_of(result))
    print(f"{hours:.1f} h in {seconds:.1f} s: {hours / max(seconds, 0.001) * 3600:.0f} h for each core hour")
    return 1 if broken else 0


def _print(result: "Result", clock: "Callable[[float], str]", story: "Sequence[tuple[float, str, str]] | None") -> None:
    print(
        f"{result.capability} {result.seed}: {result.hours:.2f} h in {result.seconds:.1f} s, {result.calls} calls, "
        f"{result.messages} messages, {len(result.faults)} faults, {result.outages} outages",
        flush=True,
    )
    for at, who, text in story or ():
        print(f"{clock(at)} {who:24} {text}")
    for name, problems in result.broken.items():
        print(f"  BROKEN {name}: {len(problems)} times, such as: {problems[0]}", flush=True)


_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "AWS_ACCESS_KEY_ID": "simulated",
    "AWS_SECRET_ACCESS_KEY": "simulated",
    "AWS_DEFAULT_REGION": "us-east-1",
}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seeds", nargs="*", type=int, help="the seeds to repeat; none: new ones from --first on")
    first = secrets.randbelow(1_000_000_000)
    parser.add_argument("--first", type=int, default=first, help="the first new seed; without it, one is drawn")
    parser.add_argument("--seconds", type=float, default=20, help="the processor time of new seeds")
    parser.add_argument("--of", action="append", help="the capability, which may be repeated; none: all")
    parser.add_argument("--short", action="store_true", help="leave out the seeds with hours of faults")
    parser.add_argument("--rough", action="store_true", help="leave out the seeds with few faults")
    parser.add_argument("--until-broken", action="store_true", help="end with the first seed that breaks a guarantee")
    parser.add_argument(
        "--shrink", action="store_true", help="print the story of the fewest faults that still break it"
    )
    text = "the number of states of each small scope to explore; none: the stated ones, with the stated faults"
    parser.add_argument("--explore", type=int, nargs="?", const=STATED, help=text)
    text = "with --explore: the most changes of the first order of steps in a run; none: any"
    parser.add_argument("--changes", type=int, default=math.inf, help=text)
    parser.add_argument("--compare", action="store_true", help="explore also orders of steps that commute")
    parser.add_argument("--tables", action="store_true", help="write the tables of steps into the pages")
    faults = ("crash", "duplicate", "cut")
    parser.add_argument("--faults", nargs="*", default=faults, choices=faults, help="with --explore: those that happen")
    parser.add_argument("--story", action="store_true", help="print every call and fault")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
