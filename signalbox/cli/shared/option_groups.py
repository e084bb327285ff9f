"""Groups of Typer options as dataclasses: each field is an option of the command line."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter
from typing import Any, ParamSpec, TypeVar, get_type_hints

import typer

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def with_option_groups(command: Callable[P, T]) -> Callable[..., T]:
    """Return a command whose dataclass parameters are replaced by options, one for each field.

    A field's annotation and default are those of a Typer parameter of the same name. Typer reads the options from the
    returned command's signature, in the order of parameters and fields; the original receives the dataclasses.
    """
    signature = inspect.signature(command)
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if name != "return" and is_dataclass(hint)}
    if not groups:
        return command

    @wraps(command)
    def with_options(**values: Any) -> T:  # noqa: ANN401 - Typer passes one value for each option
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        return command(**values)  # type: ignore[call-arg]  # the names are those of `command`

    expanded = [one for parameter in signature.parameters.values() for one in _expanded(parameter, hints)]
    with_options.__signature__ = signature.replace(parameters=expanded)  # type: ignore[attr-defined]
    with_options.__annotations__ = {one.name: one.annotation for one in expanded}
    del with_options.__wrapped__  # Typer would read its annotations
    return with_options


def _expanded(parameter: Parameter, hints: dict[str, Any]) -> Iterator[Parameter]:
    hint = hints[parameter.name]
    if not is_dataclass(hint):
        yield parameter.replace(annotation=hint)
        return
    options = inspect.signature(hint).parameters  # type: ignore[arg-type]  # a class, whose signature is __init__'s
    annotations = get_type_hints(hint, include_extras=True)
    for option in options.values():
        yield option.replace(kind=Parameter.KEYWORD_ONLY, annotation=annotations[option.name])


class CommandGroup(typer.Typer):
    """A group whose commands may have parameters that are groups of options."""

    def __init__(self, help: str, **settings: Any) -> None:  # noqa: A002, ANN401 - Typer's own
        super().__init__(help=help, no_args_is_help=True, **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[[F], F]:  # noqa: ANN401 - Typer's own
        """Return a decorator that adds a command."""
        add = super().command(name, **settings)

        def added(function: F) -> F:
            add(with_option_groups(function))
            return function

        return added
