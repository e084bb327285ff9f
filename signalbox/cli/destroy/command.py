"""`signalbox destroy`: removes a stage, and says what it removes and what stays."""

from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.cli.destroy.plan import STATE_SUFFIX, WHY_IT_STAYS, Item, Kind, Plan, item_document, planned
from signalbox.cli.shared.confirmation import confirm as ask
from signalbox.cli.shared.output import print_error, print_json, print_line, print_table
from signalbox.cli.shared.stage import Aws, Json, say
from signalbox.errors import RejectedError
from signalbox.local.files import read_json, write_json

if TYPE_CHECKING:
    import boto3

    from signalbox.cli.destroy.inventory import Inventory
    from signalbox.cli.destroy.removal import RemovalResult

FAILED = 1
HOW_TO_DELETE_DATA = "To delete the data too, add --everything. A new deployment of the stage uses it again."


def destroy(
    *,
    stage: Annotated[str, typer.Argument(help="Name of the stage.")],
    everything: Annotated[
        bool, typer.Option("--everything", help="Delete the stage's data too: tables, history, secrets and keys.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    confirm: Annotated[
        str | None, typer.Option("--confirm", metavar="STAGE", help="The stage's name again, for --everything.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
    aws: Aws = False,
    as_json: Json = False,
) -> None:
    """Remove a stage: its resources of run time, then its stack; its data stays unless --everything is given.

    Exits with 0 when all is removed, with 1 when something is left or the answer is no. Run it again to continue.
    """
    from signalbox.cli.destroy.inventory import Inventory
    from signalbox.cli.destroy.removal import Removal

    if as_json and not (yes or dry_run):
        raise RejectedError("--json cannot ask: give --yes, or --dry-run to see what would be removed")
    inventory = Inventory(_session(stage, aws=aws), stage)
    plan = _plan(inventory, everything=everything)
    if dry_run:
        _print_plan(plan, inventory, as_json=as_json)
        return
    if not as_json:
        _print_plan(plan, inventory, as_json=False)
    _ask(stage, everything=everything, yes=yes, confirm=confirm)
    removal, is_complete = Removal(inventory, say), False
    try:
        is_complete = not removal.run(everything=everything).failed
    finally:  # also of an interrupted removal: without its stack the stage has no functions
        if not aws and inventory.stack() is None:
            _note_destroyed(everything=everything and is_complete)
    _print_result(removal.result, plan, stage, as_json=as_json)
    if not is_complete:
        raise typer.Exit(FAILED)


def _note_destroyed(*, everything: bool) -> None:
    """Let the commands that use the local stage report that it was destroyed, with its data or without."""
    from signalbox.cli.shared.deployment import DESTROYED, EVERYTHING, find_deployment
    from signalbox.clients.deployment import require_local

    path = require_local(find_deployment(is_being_destroyed=True)).folder / "local.json"
    write_json(path, {**(read_json(path) or {}), DESTROYED: EVERYTHING if everything else "resources"})


def _session(stage: str, *, aws: bool) -> "boto3.Session":
    from signalbox.cli.shared.deployment import aws_session, find_deployment
    from signalbox.clients.deployment import require_local

    if aws:
        return aws_session()
    # The file of the local stage stays after its stack is gone, so that an interrupted removal can continue.
    local = require_local(find_deployment(is_being_destroyed=True))
    recorded = read_json(local.folder / "local.json") or {}
    known = [name for name in recorded.get("deployment", {}).get("stacks", ()) if not name.endswith(STATE_SUFFIX)]
    if stage not in known:
        raise RejectedError(f"the local stage is {', '.join(known)!r}, not {stage!r}; give --aws for a stage in AWS")
    return local.session()


def _plan(inventory: "Inventory", *, everything: bool) -> Plan:
    """Return the plan. Raises `RejectedError` when there is no such stage."""
    stack, state = inventory.stack(), inventory.state_stack()
    say("look for what the stage has created")
    found = [*inventory.mappings(), *inventory.queues(), *inventory.users(), *inventory.log_groups()]
    found += inventory.sessions(state)
    if stack is not None:
        found += [*inventory.client_keys(stack), *inventory.attachments(stack)]
        found.append(Item(Kind.STACK, stack.name, stack.stack_id))
    if state is None and not found:
        stage = inventory.stage
        hint = f"; the stage is {stage.removesuffix(STATE_SUFFIX)!r}" if stage.endswith(STATE_SUFFIX) else ""
        raise RejectedError(f"there is no stage {stage!r} in region {inventory.session.region_name!r}{hint}")
    return planned(found, inventory.data(state), everything=everything)


def _ask(stage: str, *, everything: bool, yes: bool, confirm: str | None) -> None:
    ask(f"Remove these resources of stage {stage}?", yes=yes)
    if not everything:
        return
    if confirm is None and not yes:
        confirm = typer.prompt(f"This deletes the data of the stage for good. Type its name ({stage})", err=True)
    if confirm != stage:
        raise RejectedError(f"the data of {stage!r} is deleted only when its name is confirmed: --confirm {stage}")


def _print_plan(plan: Plan, inventory: "Inventory", *, as_json: bool) -> None:
    if as_json:
        print_json({"stage": inventory.stage, "region": inventory.session.region_name, **plan.document()})
        return
    title = f"To be removed from stage {inventory.stage} in {inventory.session.region_name}"
    print_table(["kind", "name", "effect"], [(one.kind, one.name, one.note) for one in plan.removed], title=title)
    if plan.kept:
        print_table(["stays", "name", "why"], [(one.kind, one.name, WHY_IT_STAYS[one.kind]) for one in plan.kept])
        print_line(HOW_TO_DELETE_DATA)


def _print_result(result: "RemovalResult", plan: Plan, stage: str, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "stage": stage,
                "removed": [item_document(item) for item in result.removed],
                "failed": [{**item_document(one.item), "error": one.reason} for one in result.failed],
                "stays": [{**item_document(item), "why": WHY_IT_STAYS[item.kind]} for item in plan.kept],
            }
        )
        return
    print_line(f"{len(result.removed)} resources of stage {stage} are removed, {len(plan.kept)} stay")
    for failure in result.failed:
        print_error(f"{failure.item.kind} {failure.item.name}: {failure.reason}")
