"""The soak: all capabilities at once under injected faults and kills, then an account of every message.

`make soak MINUTES=10 SEED=1` runs one round. `--until-counts` adds rounds until 100,000 messages went through each of
the exchange and splitting, and 20,000 events through live; a run that is interrupted continues after its last round.
`--thousands` loads live alone, with 10,000 subscriptions of 250 connections.
"""

import argparse
import json
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from signalbox.cli.shared.output import print_json, print_line, print_table
from signalbox.local import stage
from signalbox.local.emulator import lifecycle
from signalbox.local.files import CHECKOUT
from signalbox.local.stage_folder import StageFolder
from tests.soak.accounts import Account
from tests.soak.run import GOALS, Round, Soak, totals

MINUTES = 10.0
SEEDS = 1_000_000
RESULTS = CHECKOUT / ".signalbox" / "soak"
COLUMNS = ("messages", "sent", "dead", "lost", "out of order", "repeated", "late", "slowest")


def main(arguments: Sequence[str]) -> int:
    """Run the rounds and print the accounts; return 1 if anything is lost, or out of order where order is promised."""
    options = _options(arguments)
    seed = secrets.randbelow(SEEDS) if options.seed is None else options.seed
    results = options.results or RESULTS / f"{seed}{'-thousands' if options.thousands else ''}.jsonl"
    rounds = _known(results)
    goals = {name: GOALS[name] for name in (["live"] if options.thousands else GOALS)}
    wanted = goals if options.until_counts else {}
    _say(f"seed {seed}; results in {results}; {len(rounds)} rounds are known")
    while not rounds or _missing(rounds, wanted):
        with _stage(seed, has_faults=options.faults) as (local, folder):
            soak = Soak(local, folder, seed, _say, thousands=options.thousands)
            done = soak.round(seconds=60 * options.minutes, counts={})
        rounds.append(done)
        results.parent.mkdir(parents=True, exist_ok=True)
        with results.open("a") as file:
            file.write(json.dumps(done.document()) + "\n")
        _show(rounds)
    if options.json:
        print_json({"seed": seed, "rounds": [one.document() for one in rounds]})
    return 0 if all(account.is_kept for account in totals(rounds)) else 1


def _missing(rounds: Sequence[Round], wanted: Mapping[str, int]) -> bool:
    """Return whether the rounds together have fewer messages than `wanted`; `live` counts events, not deliveries."""
    sent = dict.fromkeys(wanted, 0)
    for account in totals(rounds):
        name = account.kind.partition(",")[0]
        if name in sent:
            sent[name] += account.sent // account.receivers
    return any(sent[name] < count for name, count in wanted.items())


def _known(results: Path) -> list[Round]:
    """Return the rounds of an earlier run into the same file."""
    lines = results.read_text().splitlines() if results.exists() else []
    return [Round.parse(json.loads(line)) for line in lines]


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="the length of a round (default: 10)")
    parser.add_argument("--seed", type=int, help="of the faults and the kills (default: drawn, and printed)")
    parser.add_argument("--until-counts", action="store_true", help=f"add rounds until {GOALS} messages")
    parser.add_argument("--thousands", action="store_true", help="load live alone, with thousands of subscriptions")
    parser.add_argument("--no-faults", dest="faults", action="store_false", help="without fault injection")
    parser.add_argument("--results", type=Path, help="JSON lines, one for each round (default: by the seed)")
    parser.add_argument("--json", action="store_true", help="print all rounds as JSON at the end")
    return parser.parse_args(arguments)


@contextmanager
def _stage(seed: int, *, has_faults: bool) -> Iterator[tuple[dict[str, Any], StageFolder]]:
    """Provide a stage of its own, which ends when this process ends or is killed."""
    folder = StageFolder(RESULTS / "stage")
    RESULTS.mkdir(parents=True, exist_ok=True)
    with lifecycle.lifeline() as lifeline:
        try:
            faults = seed if has_faults else None
            yield stage.up(folder, port=0, fresh=True, lifeline=lifeline, faults=faults), folder
        finally:
            stage.down(folder)


def _show(rounds: Sequence[Round]) -> None:
    accounts = totals(rounds)
    print_table(COLUMNS, [_row(one) for one in accounts], title=f"{len(rounds)} rounds, seed {rounds[-1].seed}")
    for text in (text for one in accounts for text in one.examples):
        print_line(f"- {text}")
    _print_counts("dead letters", [one.dead_letters for one in rounds])
    _print_counts("further counts", [one.counts for one in rounds])
    print_line(f"{sum(one.kills for one in rounds)} kills in {sum(one.seconds for one in rounds):.0f} s")


def _print_counts(title: str, counts: Sequence[Mapping[str, int]]) -> None:
    names = sorted({name for one in counts for name in one})
    rows = [(name, str(sum(one.get(name, 0) for one in counts))) for name in names]
    print_table((title, "count"), rows or [("none", "0")], title=title)


def _row(one: Account) -> tuple[str, ...]:
    order = str(one.out_of_order) if one.is_ordered else "-"
    counts = (one.sent, one.dead, one.lost, order, one.repeated, one.late)
    return (one.kind, *map(str, counts), f"{one.slowest_seconds} s")


_say: Callable[[str], None] = print_line


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
