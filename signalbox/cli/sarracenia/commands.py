"""Registration of `signalbox post` and `signalbox subscribe`, which announce and fetch files as Sarracenia does."""

import typer

from signalbox.cli.sarracenia.post import post
from signalbox.cli.sarracenia.subscribe import subscribe
from signalbox.cli.sarracenia.subscribe_options import OrderedFilterCommand


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(post)
    app.command(cls=OrderedFilterCommand)(subscribe)
