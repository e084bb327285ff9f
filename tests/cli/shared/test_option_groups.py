"""Groups of Typer options as dataclasses."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from signalbox.cli.shared.option_groups import with_option_groups


@dataclass(frozen=True)
class Server:
    host: Annotated[str, typer.Option(help="Host name.")]
    port: Annotated[int, typer.Option("--port", "-p")] = 80


@with_option_groups
def connect(
    context: typer.Context,
    *,
    verbose: Annotated[bool, typer.Option("--verbose")] = False,
    server: Server,
    name: Annotated[str, typer.Option()] = "n",
) -> None:
    """Connect to a server."""
    typer.echo(f"{context.info_name} {verbose} {server} {name}")


def run(*words: str) -> str:
    app = typer.Typer()
    app.command()(connect)
    result = CliRunner().invoke(app, [*words])
    return result.stdout or result.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--host", "h"], "connect False Server(host='h', port=80) n"),
        (["--host", "h", "-p", "1", "--verbose", "--name", "m"], "connect True Server(host='h', port=1) m"),
    ],
)
def test_a_group_receives_the_options_of_its_fields(words, expected):
    assert run(*words).strip() == expected


def test_options_are_listed_in_the_order_of_parameters_and_fields():
    text = run("--help")

    positions = [text.index(option) for option in ("--verbose", "--host", "--port", "--name")]
    assert positions == sorted(positions)
    assert "Connect to a server." in text


def test_a_field_without_a_default_is_a_required_option():
    assert "Missing option '--host'" in run()
