"""The headline figures of all benchmark programs: each program keeps those of its last run in a file."""

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path

from benchmarks.shared.machine import Machine
from signalbox.local.files import CHECKOUT

FOLDER = CHECKOUT / ".signalbox" / "benchmarks" / "headlines"
PAGE = CHECKOUT / "benchmarks" / "README.md"
BEGIN, END = "<!-- headlines -->", "<!-- /headlines -->"
COLUMNS = ("program", "figure", "Signalbox", "peer or limit", "date", "commit", "cores", "load before")
KEY = 2  # a row is found by its program and figure
NONE = "-"


@dataclass(frozen=True, slots=True)
class Headline:
    """A figure of a run, and that of the peer or the limit peer or limit, as texts with their units."""

    figure: str
    ours: str
    peer: str = NONE


@dataclass(frozen=True, slots=True)
class Published:
    """A headline with the circumstances of its run."""

    program: str
    headline: Headline
    date: str
    commit: str
    cores: int
    load: float

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of its row."""
        one = self.headline
        return (
            *(self.program, one.figure, one.ours, one.peer),
            *(self.date, self.commit, str(self.cores), str(self.load)),
        )


def keep(program: str, headlines: Iterable[Headline], machine: Machine, *, folder: Path = FOLDER) -> None:
    """Store the headlines of a run; figures that this run did not measure stay as they are."""
    path = folder / f"{program}.json"
    circumstances = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "commit": _commit(),
        "cores": machine.cores,
        "load": machine.load_before,
    }
    known = json.loads(path.read_text()) if path.exists() else {}
    new = {one.figure: {**asdict(one), **circumstances} for one in headlines}
    if new:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(known | new, indent=1, ensure_ascii=False) + "\n")


def published(folder: Path = FOLDER) -> Iterator[Published]:
    """Yield the stored headlines, sorted by program, and within a program in the order of its figures."""
    for path in sorted(folder.glob("*.json")):
        for found in json.loads(path.read_text()).values():
            yield _published(path.stem, found)


def _published(program: str, found: Mapping[str, object]) -> Published:
    headline = Headline(str(found["figure"]), str(found["ours"]), str(found["peer"]))
    cores, load = int(str(found["cores"])), float(str(found["load"]))
    return Published(program, headline, str(found["date"]), str(found["commit"]), cores, load)


def with_table(page: str, found: Iterable[Published]) -> str:
    """Return a page with the table between its two marks; rows of figures that are not in `found` stay.

    Raises `ValueError` if a mark is missing.
    """
    before, _, rest = page.partition(BEGIN)
    table, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"the page lacks {BEGIN} and {END}")
    rows = {one.cells[:KEY]: one.cells for one in found}
    kept = {cells[:KEY]: cells for cells in _rows(table)}
    merged = sorted((kept | rows).values(), key=itemgetter(0))
    return f"{before}{BEGIN}\n\n{_markdown(merged)}\n\n{END}{after}"


def _markdown(rows: Iterable[Sequence[str]]) -> str:
    lines = [COLUMNS, ("---",) * len(COLUMNS), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _rows(table: str) -> Iterator[tuple[str, ...]]:
    """Yield the cells of the rows of a table in Markdown."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    for line in lines[2:]:
        yield tuple(cell.strip() for cell in line.strip("|").split(" | "))


def _commit() -> str:
    command = ["git", "-C", str(CHECKOUT), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or NONE
