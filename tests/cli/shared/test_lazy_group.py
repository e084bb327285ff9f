"""Groups load a command's module when the command is used, and their help says what the commands' own help says."""

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from signalbox.cli.main import app
from signalbox.cli.shared.lazy_group import LazyGroup
from tests.cli.shared.commands import leaves


def groups(command=None, words=()):
    """Yield the groups that load their commands, with their words."""
    command = command or get_command(app)
    if isinstance(command, LazyGroup):
        yield words, command
    for name, child in getattr(command, "commands", {}).items():
        yield from groups(child, (*words, name))


GROUPS = dict(groups())
PARTS = {(*words, part.name): (group, part) for words, group in GROUPS.items() for part in group.parts}


def test_these_groups_load_their_commands():
    assert set(GROUPS) == {(), ("split",), ("user",)}
    assert len(PARTS) > 30


@pytest.mark.parametrize("words", PARTS, ids=" ".join)
def test_the_help_of_a_group_has_the_first_paragraph_of_a_commands_own(words):
    group, part = PARTS[words]
    command = group.commands[part.name]

    assert command.name == part.name
    assert part.help() == " ".join(command.help.partition("\n\n")[0].split())


@pytest.mark.parametrize("words", GROUPS, ids=" ".join)
def test_a_group_lists_its_commands_in_order_with_those_that_it_has_itself(words):
    shown = CliRunner(env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"}).invoke(app, [*words, "--help"]).output
    named = [line.split()[1] for line in shown.partition("Commands")[2].splitlines() if line[:3] == "│ " + line[2:3]]

    assert [name for name in named if name in GROUPS[words].commands] == list(GROUPS[words].commands)


def test_all_commands_are_found_by_a_walk():
    assert {("split", "registry", "list"), ("user", "secret"), ("deploy",), ("status",)} <= set(leaves())
