"""Every command line in a page, and in a message of the program, is one that the command takes as it is written."""

import itertools
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pytest
import typer
from typer.main import get_command

from signalbox.cli.main import app
from tests.docs.markdown import PAGES, ROOT, blocks, name_of

APP: Any = get_command(app)
PROGRAMS = ("signalbox", ".venv/bin/signalbox")
# In backticks: in pages, and in the texts of errors and hints.
NAMED = re.compile(r"`signalbox ([^`\n]+)`")
PLACEHOLDER = re.compile(r"<[^<>\n]+>|\{[^{}\n]*\}")
SOURCES = sorted((ROOT / "signalbox").rglob("*.py"))


class Line(NamedTuple):
    """The words of a command line after the program's name, and where it stands."""

    place: str
    words: tuple[str, ...]


def _of_blocks() -> Iterator[Line]:
    for page in PAGES:
        for block in blocks(page):
            if block.language in ("sh", "console"):
                for words in _calls(_shell(block.language, block.code)):
                    yield Line(block.place, words)


def _shell(language: str, code: str) -> str:
    """Return the commands of a block, without their outputs."""
    lines = code.splitlines()
    return "\n".join(line[2:] for line in lines if line.startswith("$ ")) if language == "console" else code


def _calls(code: str) -> Iterator[tuple[str, ...]]:
    """Yield the arguments of each call of the command in shell code."""
    for line in PLACEHOLDER.sub("it", code.replace("\\\n", " ")).splitlines():
        words = shlex.shlex(line.replace("$(", "$ ("), posix=True, punctuation_chars=True)
        words.whitespace_split = True
        commands: list[list[str]] = [[]]
        for word in words:
            if set(word) <= set("();<>|&"):
                commands.append([])
            else:
                commands[-1].append(word)
        yield from (tuple(command[1:]) for command in commands if command[:1] and command[0] in PROGRAMS)


def _named() -> Iterator[Line]:
    for file in (*PAGES, *SOURCES):
        for found in NAMED.findall(file.read_text()):
            if "…" not in found:
                words = PLACEHOLDER.sub("it", found).replace("'", "").split()
                yield from (Line(name_of(file), one) for one in _alternatives(words))


def _alternatives(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the command lines of one with alternatives, such as `keep set|list`."""
    yield from itertools.product(*(word.split("|") for word in words))


def _command(words: Sequence[str]) -> tuple[Any, list[str]]:
    """Return the command of a line and its arguments; the last group that is named if there is no such command."""
    command, rest = APP, list(words)
    while rest and (children := _children(command)) and rest[0] in children:
        command = children[rest.pop(0)]
    return command, rest


def _children(command: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = getattr(command, "commands", {})
    return found


@pytest.mark.parametrize("line", sorted(set(_of_blocks())), ids=lambda line: " ".join(line.words)[:60])
def test_an_example_of_a_page_is_a_complete_command_line(line, monkeypatch):
    monkeypatch.setenv("SIGNALBOX_DATABASE", "postgresql://it")  # in the pages, set before
    command, arguments = _command(line.words)

    try:
        command.make_context("signalbox", arguments)
    except typer.Exit:
        assert set(arguments) & {"--help", "-h", "--version"}
    except typer.TyperException as error:
        pytest.fail(f"{line.place}: signalbox {' '.join(line.words)}: {error.format_message()}")


@pytest.mark.parametrize("line", sorted(set(_named())), ids=lambda line: " ".join(line.words)[:60])
def test_a_command_that_a_text_names_is_there_with_its_options(line):
    command, arguments = _command(line.words)
    options = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
    given = {word.partition("=")[0] for word in arguments if re.fullmatch(r"--?[a-z][a-z-]*(=.*)?", word)}

    assert given <= options | {"--help", "-h"}, line
    assert not (_children(command) and arguments and not arguments[0].startswith("-")), line
