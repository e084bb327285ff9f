"""Compaction and reports of raw history with Spark and DuckDB, with a comparison of all rows."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.parts.history import spark as history_spark
from benchmarks.shared.processes import Measured, run
from signalbox.errors import UnavailableError
from signalbox.local.files import CHECKOUT

HOME = CHECKOUT / ".signalbox" / "benchmarks" / "history"
ENGINES = Path(__file__).parent / "engines"
FORMATS = ("json", "parquet")
SPARK, DUCKDB, FLOOR = "Spark", "DuckDB", "floor"
DAYS = ("2026-11-18", "2026-11-19", "2026-11-20")
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Compared:
    """The runs of the engines with the same files, and the number of rows by table that differ from Spark's."""

    events: int
    file_format: str
    runs: dict[str, Measured]
    rows: dict[str, int] = field(default_factory=dict)
    differences: dict[str, dict[str, int]] = field(default_factory=dict)


def measure(events: int, engines: Sequence[str], *, formats: Sequence[str], say: Say) -> Iterator[Compared]:
    """Measure the engines with the same raw files, one format after the other."""
    raw = raw_events(events, say)
    for file_format in formats:
        with scratch_folder(f"tables-{events}-{file_format}") as folder:
            yield _compare(events, engines, raw=raw / file_format, file_format=file_format, folder=folder, say=say)


def _compare(events: int, engines: Sequence[str], *, raw: Path, file_format: str, folder: Path, say: Say) -> Compared:
    compared = Compared(events, file_format, {})
    for engine in (FLOOR, *engines):
        say(f"{events:,} events of {file_format}: {engine}")
        compared.runs[engine] = _run(engine, raw, file_format, folder / engine)
    for engine in engines:
        if SPARK in engines and engine != SPARK:
            tables = folder / SPARK / "tables" / history_spark.DATABASE
            for line in _program("compare.py", str(tables), str(folder / engine)):
                counts = json.loads(line)
                compared.rows[counts["table"]] = counts["rows"]
                differing = counts["only_one"] + counts["only_other"]
                compared.differences.setdefault(engine, {})[counts["table"]] = differing
    return compared


def _run(engine: str, raw: Path, file_format: str, out: Path) -> Measured:
    if engine == SPARK:
        return history_spark.compact_and_report(raw, file_format, out, days=DAYS)
    program = {DUCKDB: "in_duckdb.py", FLOOR: "floor.py"}[engine]
    words = [str(raw), file_format] + ([] if engine == FLOOR else [str(out)])
    return run([str(_python()), str(ENGINES / program), *words])


def raw_events(events: int, say: Say, *, days: int = len(DAYS)) -> Path:
    """Return the folder of `events` raw events of some days, generated once."""
    folder = HOME / (f"raw-{events}" if days == len(DAYS) else f"raw-{events}-in-{days}")
    if not folder.exists():
        say(f"generating {events:,} events")
        with scratch_folder(f"making-{events}") as making:
            list(_program("events.py", str(making / "raw"), str(events), str(days)))
            (making / "raw").rename(folder)
    return folder


def _program(name: str, *words: str) -> Iterator[str]:
    done = subprocess.run([_python(), ENGINES / name, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UnavailableError(f"{name} failed:\n{done.stderr[-2000:]}")
    yield from done.stdout.splitlines()


@contextmanager
def scratch_folder(name: str) -> Iterator[Path]:
    """Yield an empty folder, which is removed afterwards."""
    folder = HOME / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _python() -> Path:
    """Return the Python of the virtual environment with the other engines, created once."""
    home, requirements = HOME / "engines", ENGINES / "requirements.txt"
    python, wanted = home / "bin" / "python", requirements.read_text()
    mark = home / "requirements.txt"
    if not mark.exists() or mark.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", requirements], check=True)
        mark.write_text(wanted)
    return python
