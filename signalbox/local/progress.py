"""Progress of long steps on standard error: a moving line on a terminal, one plain line for each step elsewhere."""

import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

TAIL_LINES = 40
Say = Callable[[str], None]


@contextmanager
def step(name: str) -> Iterator[Say]:
    """Show a step while it runs, then its duration. Yields a function that shows a detail, on a terminal only."""
    started = time.monotonic()
    shown = _on_terminal(name) if sys.stderr.isatty() else _on_plain_stream(name)
    with shown as say:
        yield say
    sys.stderr.write(f"{_ending(name)} {time.monotonic() - started:.1f} s\n")


def _ending(name: str) -> str:
    return f"  {name} ..." if sys.stderr.isatty() else ""


@contextmanager
def _on_terminal(name: str) -> Iterator[Say]:
    from rich.console import Console  # noqa: PLC0415 - slow to import, and needed on a terminal only

    console = Console(stderr=True)
    room = max(0, console.width - len(name) - 10)  # rich does not erase the first line of a status that wraps
    with console.status(f"{name} ...") as status:
        yield lambda detail: status.update(f"{name} ... [dim]{_escaped(detail[:room])}[/dim]")


def _escaped(text: str) -> str:
    return text.replace("[", r"\[")


@contextmanager
def _on_plain_stream(name: str) -> Iterator[Say]:
    sys.stderr.write(f"  {name} ...")
    sys.stderr.flush()
    try:
        yield lambda _: None
    except BaseException:
        sys.stderr.write("\n")
        raise


def output_of(command: list[str], *, folder: Path, environment: Mapping[str, str], say: Say) -> tuple[int, list[str]]:
    """Run a command, passing each line of its output to `say`; return its exit status and its last 40 lines."""
    tail: deque[str] = deque(maxlen=TAIL_LINES)
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            if text := line.strip():
                tail.append(line.rstrip())
                say(text)
    return process.returncode, list(tail)
