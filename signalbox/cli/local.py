"""`signalbox local`: the stage on this machine."""

from typing import Annotated, Any

import typer

from signalbox.cli.output import print_fields, print_json, print_line, print_table

app = typer.Typer(
    help="Run a whole stage on this machine: an emulated AWS with the app deployed into it.", no_args_is_help=True
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Port = Annotated[int | None, typer.Option(help="Port on 127.0.0.1 (default: 4566).", min=1, max=65535)]
Context = Annotated[
    list[str] | None, typer.Option("--context", "-c", metavar="KEY=VALUE", help="A deployment setting; repeatable.")
]
Demo = Annotated[bool, typer.Option("--demo/--no-demo", help="Show afterwards that every capability works.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Throw away a running stage first.")]


@app.command()
def up(
    *, port: Port = None, context: Context = None, demo: Demo = True, fresh: Fresh = False, as_json: Json = False
) -> None:
    """Start the stage, or bring a running one up to date, and show that it works."""
    from signalbox.cli.deployment import local_deployment
    from signalbox.local import stage
    from signalbox.local.demo.evidence import evidence
    from signalbox.local.state import State

    local = stage.up(State(), port=port, context=context or [], fresh=fresh)
    rows = list(evidence(local_deployment(local))) if demo else []
    if as_json:
        print_json({"local": _public(local), "demo": [[row.capability, row.what, row.value] for row in rows]})
        return
    if rows:
        print_table(
            ["capability", "what", "seen"], [(row.capability, row.what, row.value) for row in rows], title="Demo"
        )
    _say_where_to_go(local)


def _public(local: dict[str, Any]) -> dict[str, Any]:
    """Return what may be shown: everything but the keys and tickets, which only local.json holds."""
    return {name: value for name, value in local.items() if not name.endswith("_credentials") and name != "live_users"}


def _say_where_to_go(local: dict[str, Any]) -> None:
    from signalbox.local.state import State

    print_line("Signalbox runs on this machine.")
    print_fields(
        {
            "  AWS endpoint": local["endpoint_url"],
            "  rendezvous": f"{local['rendezvous_url']}debug",
            "  live page": local["page_url"],
            "  all of it, with keys": str(State().local),
        }
    )
    print_line("Next: .venv/bin/signalbox --help · .venv/bin/signalbox local logs · make test · make down")


@app.command()
def down() -> None:
    """Stop the stage and delete its state."""
    from signalbox.local import stage
    from signalbox.local.state import State

    print_line("Stopped." if stage.down(State()) else "Nothing was running.")


@app.command()
def status(*, as_json: Json = False) -> None:
    """Tell whether the stage runs, and where; ends with 1 if it does not."""
    from signalbox.local.emulator import lifecycle
    from signalbox.local.state import State, read_json

    state = State()
    running = lifecycle.running(state)
    local = read_json(state.local) if running else None
    shown = {
        "running": running is not None,
        "deployed": local is not None,
        "process": lifecycle.process_id(state),
        "log": str(state.log),
        **_public(local or {}),
    }
    if as_json:
        print_json(shown)
    else:
        print_fields({name: str(value) for name, value in shown.items() if not isinstance(value, dict)})
    raise typer.Exit(0 if running else 1)


@app.command()
def logs(
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until interrupted.")] = False,
    function: Annotated[str | None, typer.Option(help="A Lambda function, or a part of its name.")] = None,
) -> None:
    """Print the emulator's log, or what a function logged."""
    from signalbox.local.logs import emulator_lines, function_lines
    from signalbox.local.state import State

    lines = (
        emulator_lines(State(), follow=follow) if function is None else function_lines(State(), function, follow=follow)
    )
    for line in lines:
        print_line(line)
