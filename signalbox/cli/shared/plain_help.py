"""Help of commands with many or long options, as plain text: a table of 80 columns would cut their names."""

from typing import Any

from typer.core import TyperCommand


class PlainHelpCommand(TyperCommand):
    """A command whose help wraps and cuts nothing."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - Typer's own
        super().__init__(*arguments, **{**options, "rich_markup_mode": None})
