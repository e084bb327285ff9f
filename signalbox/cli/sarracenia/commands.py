"""`signalbox post` and `signalbox subscribe`: files are announced, and fetched, in Sarracenia's words."""

import typer

from signalbox.cli.sarracenia.post import post
from signalbox.cli.sarracenia.subscribe import Ordered, subscribe


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(post)
    app.command(cls=Ordered)(subscribe)
