"""`signalbox local`: start, stop and inspect the stage on this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from signalbox.cli.shared.confirmation import Yes, confirm
from signalbox.cli.shared.deployment import DESTROYED, EVERYTHING
from signalbox.cli.shared.kept_settings import Reset, SettingsPlan, new_stage, plan_of_stage
from signalbox.cli.shared.option_groups import CommandGroup
from signalbox.cli.shared.output import print_fields, print_json, print_line, print_table
from signalbox.cli.shared.plain_help import PlainHelpCommand
from signalbox.clients.deployment import local_deployment
from signalbox.local.demo.record import record, recorded
from signalbox.local.emulator import lifecycle
from signalbox.local.files import read_json, require_checkout
from signalbox.local.logs import emulator_lines, function_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from signalbox.local.stage_folder import StageFolder
    from signalbox.verify.report import Row

app = CommandGroup("Run a stage on this machine: an emulated AWS with the app deployed to it.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Port = Annotated[int | None, typer.Option(help="Port on 127.0.0.1 (default: 4566).", min=1, max=65535)]
Context = Annotated[
    list[str] | None, typer.Option("--context", "-c", metavar="KEY=VALUE", help="A deployment setting; repeatable.")
]
Demo = Annotated[
    bool | None,
    typer.Option(
        "--demo/--no-demo", help="Run a demo of each capability afterwards (default: run it, except with --faults)."
    ),
]
Kubernetes = Annotated[
    bool,
    typer.Option(
        "--kubernetes",
        help="Show splitting on a Kubernetes cluster, and build it in 5 to 13 minutes (default: only if it is built).",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--faults", metavar="SEED", help="Inject faults, delays and duplicates, as they occur on AWS."),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Delete a running stage first.")]


@app.command(cls=PlainHelpCommand)
def up(
    *,
    port: Port = None,
    context: Context = None,
    reset: Reset = None,
    demo: Demo = None,
    kubernetes: Kubernetes = False,
    fresh: Fresh = False,
    yes: Yes = False,
    faults: Seed = None,
    as_json: Json = False,
) -> None:
    """Start the stage, or update a running one, and run the demo.

    A running stage keeps the settings that the command leaves out.
    """
    from signalbox.local import stage
    from signalbox.local.stage_folder import StageFolder

    require_checkout()
    if fresh:
        _confirm_loss(StageFolder(), yes=yes, as_json=as_json)
    folder = StageFolder()
    plan = _settings(folder, context or [], reset or [], fresh=fresh)
    plan.confirm(yes=yes, as_json=as_json)
    local = stage.up(folder, port=port, context=plan.context, fresh=fresh, faults=faults, wake_live=False)
    rows = []
    if demo if demo is not None else local["faults"] is None:
        rows = _demo(folder.path, local, again=bool(demo), kubernetes=kubernetes, as_json=as_json)
    else:
        stage.start_live(local)
    if as_json:
        print_json({"local": _public(local), "demo": [[row.capability, row.what, row.detail] for row in rows]})
        return
    _print_addresses(local)


def _demo(folder: Path, local: dict[str, Any], *, again: bool, kubernetes: bool, as_json: bool) -> "list[Row]":
    """Run the demo and print its rows, those of rendezvous at once; return them.

    Of an unchanged stage, only rendezvous is shown again, except with `again` or `kubernetes`.
    """
    from datetime import datetime

    from signalbox.local import stage
    from signalbox.local.demo.evidence import evidence, first_evidence

    deployment = local_deployment(local, folder=folder)
    earlier = None if again or kubernetes else recorded(folder, local)
    first = first_evidence(deployment)
    _print_rows(first, as_json=as_json)
    if earlier is not None:
        at, rows = earlier
        if not as_json:
            print_line(f"Nothing has changed since the demo of {at}, which showed this; --demo runs it again:")
        _print_rows(rows, as_json=as_json)
    else:
        # Before Spark and the splits take the processors: a client of live has ten seconds to join.
        stage.start_live(local)
        rows = evidence(deployment, build=kubernetes)
        record(folder, local, rows, now=datetime.now().astimezone())
        _print_rows(rows, as_json=as_json)
    return [*first, *rows]


def _print_rows(rows: "Sequence[Row]", *, as_json: bool) -> None:
    if not as_json:
        print_table(
            ["capability", "what", "seen"], [(row.capability, row.what, row.detail) for row in rows], title="Demo"
        )


def _settings(folder: "StageFolder", context: list[str], reset: list[str], *, fresh: bool) -> SettingsPlan:
    """Return the settings of a deployment, with those that a running stage keeps. Raises `InvalidSettings`."""
    from signalbox.local import stage

    running = None if fresh else lifecycle.running(folder)
    if running is None:
        return new_stage(context, reset=reset)
    found = plan_of_stage(lambda _: running.session(), context, reset=reset, place=stage.local_context([]))
    found.say()
    return found


def _public(local: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of local.json without its keys and tickets."""
    return {name: value for name, value in local.items() if not name.endswith("_credentials") and name != "live_users"}


def _print_addresses(local: dict[str, Any]) -> None:
    from signalbox.local.stage_folder import StageFolder

    print_line("The stage is running on this machine.")
    faults = {} if local["faults"] is None else {"  faults": f"seed {local['faults']}"}
    print_fields(
        {
            **faults,
            "  folder": str(StageFolder().path.parent),
            "  AWS endpoint": local["endpoint_url"],
            **({"  rendezvous": f"{local['rendezvous_url']}debug"} if "rendezvous_url" in local else {}),
            **({"  live page": local["page_url"]} if "page_url" in local else {}),
            "  all fields, with keys": str(StageFolder().local),
        }
    )
    print_line("Next: .venv/bin/signalbox --help · .venv/bin/signalbox local logs · make test · make down")


def _confirm_loss(stage_folder: "StageFolder", *, yes: bool, as_json: bool = False) -> None:
    """Ask before a running stage is deleted, also one that does not respond; not if its data was destroyed before."""
    is_empty = (read_json(stage_folder.local) or {}).get(DESTROYED) == EVERYTHING
    if not is_empty and lifecycle.process_id(stage_folder) is not None:
        where = f"The stage in {stage_folder.path} runs{_on_port(stage_folder)}."
        confirm(f"{where} Delete it with all of its queues, tables and messages?", yes=yes, as_json=as_json)


def _on_port(stage_folder: "StageFolder") -> str:
    started = read_json(stage_folder.running)
    return "" if started is None else f" on port {started['port']}"


@app.command()
def down(*, yes: Yes = False) -> None:
    """Stop the stage of this folder and delete its state."""
    from signalbox.local import stage

    stage_folder = _stage_folder()
    _confirm_loss(stage_folder, yes=yes)
    port = _on_port(stage_folder)
    if stage.down(stage_folder):
        print_line(f"Stopped: the stage in {stage_folder.path}{port}; its state is deleted.")
    else:
        print_line(f"The stage in {stage_folder.path} was not running.")


def _stage_folder() -> "StageFolder":
    """Return the stage of the current folder. Raises `RejectedError` if it has none."""
    from signalbox.local.stage_folder import find_stage_folder

    return find_stage_folder(Path.cwd())


@app.command()
def status(*, as_json: Json = False) -> None:
    """Show whether the stage of this folder runs, and its addresses; exit with 1 if it does not run."""
    stage_folder = _stage_folder()
    running = lifecycle.running(stage_folder)
    local = read_json(stage_folder.local) if running else None
    shown = {
        "running": running is not None,
        "deployed": local is not None,
        "folder": str(stage_folder.path),
        "port": None if running is None else running.port,
        "process": lifecycle.process_id(stage_folder),
        "log": str(stage_folder.log),
        **_public(local or {}),
    }
    if as_json:
        print_json(shown)
    else:
        faults = shown.pop("faults", None)
        seed = {} if faults is None else {"faults": f"seed {faults}"}
        print_fields({name: str(value) for name, value in shown.items() if not isinstance(value, dict)} | seed)
    raise typer.Exit(0 if running else 1)


@app.command()
def logs(
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print new lines until interrupted.")] = False,
    function: Annotated[str | None, typer.Option(help="A Lambda function's name, or a part of it.")] = None,
) -> None:
    """Print the emulator's log, or that of a function."""
    stage_folder = _stage_folder()
    lines = (
        emulator_lines(stage_folder, follow=follow)
        if function is None
        else function_lines(stage_folder, function, follow=follow)
    )
    for line in lines:
        print_line(line)
