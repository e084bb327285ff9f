"""Groups of commands whose modules are imported when one of their commands is used: a command loads only its own."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from signalbox.cli.shared.option_groups import with_option_groups

CLI = Path(__file__).parents[1]


class LazyCommand(NamedTuple):
    """A command or a group of commands of a module."""

    name: str
    source: str
    """MODULE:NAME of the command's function, or of the group's `typer.Typer`, below `signalbox.cli`."""
    command_class: str = ""
    """MODULE:NAME of the class of the command below `signalbox.cli`, if not Typer's own."""

    def load(self) -> Any:  # noqa: ANN401 - a command of Typer's own copy of Click, which it does not export
        """Import the module and return the command."""
        source = _imported(self.source)
        if isinstance(source, typer.Typer):
            command = get_group(source)
            command.name = self.name
            return command
        app = typer.Typer(add_completion=False)
        command_class = _imported(self.command_class) if self.command_class else TyperCommand
        app.command(name=self.name, cls=command_class)(with_option_groups(source))
        return get_command(app)

    def help(self) -> str:
        """Return the first paragraph of its help, as its module's source has it; imports nothing."""
        module, _, name = self.source.partition(":")
        text = CLI.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
        return next(filter(None, (_help_of(statement, name) for statement in ast.parse(text).body)))


def _help_of(statement: ast.stmt, name: str) -> str:
    """Return the help of a command's function or of a group, or nothing if the statement defines another name."""
    match statement:
        case ast.FunctionDef(name=found) if found == name:
            return " ".join((ast.get_docstring(statement) or "").partition("\n\n")[0].split())
        case ast.Assign(targets=[ast.Name(id=found)], value=ast.Call(args=[ast.Constant(value=str(text)), *_])):
            return text if found == name else ""
    return ""


def _imported(path: str) -> Any:  # noqa: ANN401 - whatever it names
    module, _, name = path.partition(":")
    return getattr(import_module(f"signalbox.cli.{module}"), name)


class LazyCommands(Mapping[str, Any]):
    """The commands of a group by name: the given ones, then its parts, each loaded when it is first read."""

    def __init__(self, present: Mapping[str, Any], parts: Sequence[LazyCommand]) -> None:
        self._parts = {part.name: part for part in parts}
        self._names = (*present, *self._parts)
        self._loaded = dict(present)

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - see `LazyCommand.load`
        if name not in self._loaded:
            self._loaded[name] = self._parts[name].load()
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def outlines(self) -> Mapping[str, Any]:
        """Return the commands with their names and help alone; loads none."""
        stubs = {name: TyperCommand(name, help=part.help()) for name, part in self._parts.items()}
        return {name: stubs.get(name) or self._loaded[name] for name in self}


class LazyGroup(TyperGroup):
    """A group of the commands that Typer adds, and of the commands of its class, which are loaded on first use."""

    parts: ClassVar[Sequence[LazyCommand]] = ()

    def __init__(self, *, commands: Mapping[str, Any] | None = None, **options: Any) -> None:  # noqa: ANN401 - Typer's own
        super().__init__(**options)
        self.commands: Any = LazyCommands(commands or {}, self.parts)

    def list_commands(self, _context: Any) -> list[str]:  # noqa: ANN401 - Typer's own
        """Return the names of the commands; loads none."""
        return list(self.commands)

    def format_help(self, context: Any, formatter: Any) -> None:  # noqa: ANN401 - Typer's own
        """Write the help of the group; loads no command."""
        outline = copy(self)
        outline.commands = self.commands.outlines()
        TyperGroup.format_help(outline, context, formatter)


def group_of(*parts: tuple[str, ...]) -> type[LazyGroup]:
    """Return the class of a group with these commands, the fields of `LazyCommand`, for `typer.Typer(cls=...)`."""
    return type("LazyGroup", (LazyGroup,), {"parts": [LazyCommand(*part) for part in parts]})
