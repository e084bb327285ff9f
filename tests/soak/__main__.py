"""The soak: all capabilities at once under injected faults and kills, then an account of every message.

`make soak MINUTES=10 SEED=1`; `--thousands` loads live alone, with 10,000 subscriptions of 250 connections;
`--outages` takes away one service after the other.
"""

import argparse
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from signalbox.cli.shared.output import print_line, print_table
from signalbox.local import stage
from signalbox.local.emulator import lifecycle
from signalbox.local.files import CHECKOUT
from signalbox.local.stage_folder import StageFolder
from tests.soak.accounts import Account
from tests.soak.outages import Outages
from tests.soak.run import Round, Soak

MINUTES = 10.0
SEEDS = 1_000_000
FOLDER = CHECKOUT / ".signalbox" / "soak" / "stage"
COLUMNS = ("messages", "sent", "dead", "lost", "out of order", "repeated", "late", "slowest", "after the kills")


def main(arguments: Sequence[str]) -> int:
    """Print the accounts of a round; return 1 if anything is lost, dead, or out of order where order is promised."""
    options = _options(arguments)
    seed = secrets.randbelow(SEEDS) if options.seed is None else options.seed
    _say(f"seed {seed}")
    with _stage(seed, has_faults=options.faults) as (local, folder):
        outages = Outages(folder) if options.outages else None
        soak = Soak(local, folder, seed, _say, thousands=options.thousands, outages=outages)
        done = soak.round(seconds=60 * options.minutes, counts={})
    _show(done)
    return 0 if all(account.is_kept for account in done.accounts) else 1


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES, help="the time of load (default: 10)")
    parser.add_argument("--seed", type=int, help="of the faults and the kills (default: drawn, and printed)")
    parser.add_argument("--thousands", action="store_true", help="load live alone, with thousands of subscriptions")
    parser.add_argument("--no-faults", dest="faults", action="store_false", help="without fault injection")
    parser.add_argument(
        "--outages", action="store_true", help="let one service after the other be away for three minutes"
    )
    return parser.parse_args(arguments)


@contextmanager
def _stage(seed: int, *, has_faults: bool) -> Iterator[tuple[dict[str, Any], StageFolder]]:
    """Provide a stage of its own, which ends when this process ends or is killed."""
    folder = StageFolder(FOLDER)
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with lifecycle.lifeline() as lifeline:
        try:
            faults = seed if has_faults else None
            yield stage.up(folder, port=0, fresh=True, lifeline=lifeline, faults=faults), folder
        finally:
            stage.down(folder)


def _show(done: Round) -> None:
    print_table(COLUMNS, [_row(one, done.ended) for one in done.accounts], title=f"Seed {done.seed}")
    for text in (text for one in done.accounts for text in one.examples):
        print_line(f"- {text}")
    _print_counts("dead letters", done.dead_letters)
    _print_counts("further counts", done.counts)
    _print_counts("late messages", _late(done.accounts))
    print_line(f"{done.kills} kills in {done.seconds:.0f} s; the last message came {done.settle_seconds:.0f} s later")


def _print_counts(title: str, counts: Mapping[str, int]) -> None:
    rows = [(name, str(count)) for name, count in sorted(counts.items())]
    print_table((title, "count"), rows or [("none", "0")], title=title)


def _late(accounts: Sequence[Account]) -> Mapping[str, int]:
    """Return the numbers of late messages by kind, and by the service whose return they waited for longest."""
    return {
        f"{one.kind}: {f'after the return of {service}' if service else 'without an outage'}": count
        for one in accounts
        for service, count in one.late.items()
    }


def _row(one: Account, ended: float) -> tuple[str, ...]:
    order = str(one.out_of_order) if one.is_ordered else "-"
    counts = (one.sent, one.dead, one.lost, order, one.repeated, one.late.total())
    return (one.kind, *map(str, counts), f"{one.slowest_seconds} s", f"{max(0, one.newest - ended):.0f} s")


_say: Callable[[str], None] = print_line


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
