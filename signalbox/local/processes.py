"""Processes by their command lines, on Linux and macOS, without a dependency."""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

PROCESSES = Path("/proc")


def piped(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str], has_input: bool = False
) -> "subprocess.Popen[str]":
    """Start a program whose output and errors come through one pipe, as text; with `has_input`, its input, too."""
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )


def processes_naming(text: str) -> list[int]:
    """Return the ids of the processes whose command line contains the text, except this one."""
    return processes_naming_each([text])[0]


def processes_naming_each(texts: Sequence[str]) -> list[list[int]]:
    """Return for each text the ids of the processes whose command line contains it, except this one."""
    commands = [(process, command) for process, command in _commands() if process != os.getpid()]
    return [[process for process, command in commands if text in command] for text in texts]


def is_alive(process: int) -> bool:
    """Return whether a process runs; a zombie, which has ended and waits for its parent, does not."""
    with suppress(ChildProcessError):  # collect it, if it is a child of this process
        os.waitpid(process, os.WNOHANG)
    try:
        os.kill(process, 0)
        # Small containers have no init that collects orphans: they stay in the process table as zombies.
        return (PROCESSES / str(process) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except FileNotFoundError:  # no /proc, or the process has just ended
        return not PROCESSES.joinpath("self").exists()


def _commands() -> Iterator[tuple[int, str]]:
    return _linux_commands() if (PROCESSES / "self" / "cmdline").exists() else _listed_commands()


def _linux_commands() -> Iterator[tuple[int, str]]:
    """Read the command lines from /proc: small images have no `ps`."""
    for path in PROCESSES.glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except OSError:  # the process has just ended
            continue
        yield int(path.parent.name), command.replace(b"\0", b" ").decode(errors="replace")


def _listed_commands() -> Iterator[tuple[int, str]]:
    listing = subprocess.run(["/bin/ps", "-axww", "-o", "pid=,command="], capture_output=True, text=True, check=True)
    for line in listing.stdout.splitlines():
        process, _, command = line.strip().partition(" ")
        yield int(process), command
