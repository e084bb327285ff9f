"""All commands of the program."""

from collections.abc import Iterator, Mapping
from typing import Any

from typer.main import get_command

from signalbox.cli.main import app


def leaves(command: Any = None, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command."""
    command = command or get_command(app)
    children: Mapping[str, Any] = getattr(command, "commands", {})
    for name, child in children.items():
        yield from leaves(child, (*words, name))
    if not children:
        yield words
