"""The table of all headline figures, from the last runs of the programs: `python -m benchmarks.headlines`."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict

from benchmarks.shared.headlines import COLUMNS, PAGE, published, with_table
from signalbox.cli.shared.output import print_json, print_line, print_table


def main(arguments: Sequence[str]) -> int:
    """Print the table, or write it into benchmarks/README.md."""
    options = _options(arguments)
    found = list(published())
    if options.write:
        PAGE.write_text(with_table(PAGE.read_text(), found))
        print_line(f"{len(found)} figures are in {PAGE.name}")
    elif options.json:
        print_json([asdict(one) for one in found])
    else:
        print_table(COLUMNS, [one.cells for one in found], title="headline figures")
    return 0


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.headlines", description=__doc__)
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--write",
        action="store_true",
        help="write them into the table in benchmarks/README.md, where other figures stay",
    )
    form.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
