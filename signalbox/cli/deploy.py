"""`signalbox deploy`: deploys a stage to the AWS account of the standard credentials."""

import os
from collections.abc import Sequence
from typing import Annotated

import typer

from signalbox.cli.doctor.commands import examine, print_finding
from signalbox.cli.shared.confirmation import Yes
from signalbox.cli.shared.deployment import settings_session
from signalbox.cli.shared.kept_settings import Reset, plan_of_stage
from signalbox.cli.shared.output import print_error
from signalbox.cli.shared.stage import say
from signalbox.doctor.findings import has_stop

OBSTRUCTED = 1


def deploy(
    *,
    context: Annotated[
        list[str] | None, typer.Option("--context", "-c", metavar="KEY=VALUE", help="A deployment setting; repeatable.")
    ] = None,
    reset: Reset = None,
    bootstrap: Annotated[
        bool, typer.Option("--bootstrap", help="Bootstrap the account and region for CDK first; needed once.")
    ] = False,
    skip_doctor: Annotated[
        bool, typer.Option("--skip-doctor", help="Do not examine the account first, as `signalbox doctor` does.")
    ] = False,
    yes: Yes = False,
    approve: Annotated[
        bool, typer.Option("--approve", help="Do not ask before permissions are widened, as in a pipeline.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Deploy even if the doctor finds an obstacle.")] = False,
) -> None:
    """Deploy to the AWS account of your standard credentials; asks before it widens permissions.

    The stage keeps the settings that the command leaves out.
    """
    from signalbox.local.cdk import deploy_to_aws
    from signalbox.local.files import require_checkout

    require_checkout()
    _say_place(context or [])
    settings = plan_of_stage(settings_session, context or [], reset=reset or [])
    settings.say()
    settings.confirm(yes=yes)
    if not skip_doctor:
        _examine(settings.context, force=force)
    raise typer.Exit(deploy_to_aws(settings.context, bootstrap=bootstrap, approve=approve))


def _say_place(context: Sequence[str]) -> None:
    """Name the stage, the region and the folder; the doctor names the account. Raises `InvalidSettings`."""
    from signalbox.cli.doctor.settings import read_settings
    from signalbox.local.files import CHECKOUT

    config = read_settings(context)
    set_regions = (config.region, *(os.environ.get(name) for name in ("AWS_REGION", "AWS_DEFAULT_REGION")))
    region = next(filter(None, set_regions), "the region of your profile")
    say(f"stage {config.stage} in {region}, from {CHECKOUT}")


def _examine(context: Sequence[str], *, force: bool) -> None:
    """Run the doctor; end the command if a deployment would fail."""
    if has_stop(examine(context, on_finding=print_finding)) and not force:
        print_error(
            "the deployment would fail, or its stage would not work: see the lines that begin with `stop`\n"
            "`--force` deploys nevertheless, `--skip-doctor` without looking"
        )
        raise typer.Exit(OBSTRUCTED)
