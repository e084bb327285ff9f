"""The tables of a benchmark run, for the terminal and as Markdown."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.shared.machine import Machine
from signalbox.cli.shared.output import print_line, print_table


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the report."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


def show(tables: Iterable[Table], promises: Iterable[tuple[str, bool]], *, machine: Machine, as_document: bool) -> None:
    """Print the tables, for the terminal or as Markdown, the promises that the run kept, and its machine."""
    for table in tables:
        if as_document:
            for line in as_markdown(table).splitlines():
                print_line(line)
            print_line()
        else:
            print_table(table.columns, table.rows, title=table.title)
            print_line(table.note)
    for promise, kept in promises:
        print_line(f"- {'kept' if kept else 'NOT KEPT'}: {promise}")
    print_line()
    print_line(described(machine))


def as_markdown(table: Table) -> str:
    """Return a table in Markdown."""
    lines = [table.columns, ["---"] + ["---:"] * (len(table.columns) - 1), *table.rows]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"**{table.title}**\n\n{text}" + (f"\n\n{table.note}" if table.note else "")


def described(machine: Machine) -> str:
    """Return the line that describes the machine and the command of the run."""
    busy = " **The machine was busy: times are unreliable.**" if machine.is_busy else ""
    upstream = f", upstream {machine.upstream}" if machine.upstream else ""
    return (
        f"{machine.cores} cores, {machine.memory_gigabytes} GB, {machine.system}, load {machine.load_before} before "
        f"the run; Python {machine.python}, {machine.emulator}{upstream}. Command: `{machine.command}`.{busy}"
    )
