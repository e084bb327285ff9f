"""The `signalbox` command: one group of commands per capability, and one for the local stage."""

import os
import sys
from typing import Annotated

import typer

from signalbox import __version__
from signalbox.cli import local
from signalbox.cli.destroy.command import destroy
from signalbox.cli.doctor.commands import doctor, examine, print_finding
from signalbox.cli.exchange import commands as exchange
from signalbox.cli.history import commands as history
from signalbox.cli.history.replay import replay
from signalbox.cli.live import commands as live
from signalbox.cli.rendezvous import commands as rendezvous
from signalbox.cli.sarracenia import commands as sarracenia
from signalbox.cli.shared.output import print_error, print_line
from signalbox.cli.splitting import commands as splitting
from signalbox.cli.verify.commands import verify
from signalbox.errors import RejectedError, SignalboxError

REJECTED = 2
UNAVAILABLE = 1

app = typer.Typer(
    name="signalbox",
    help="A serverless message broker on AWS.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(local.app, name="local")
app.add_typer(rendezvous.app, name="rendezvous")
app.add_typer(splitting.app, name="split")
exchange.register(app)
sarracenia.register(app)
live.register(app)
app.add_typer(history.app, name="history")
app.command()(history.report)
app.command()(replay)
app.command()(doctor)
app.command()(verify)


def main() -> None:
    """Run the command line; an error of Signalbox or AWS ends in one line and an exit status."""
    try:
        app()
    except SignalboxError as error:
        print_error(str(error))
        sys.exit(REJECTED if isinstance(error, RejectedError) else UNAVAILABLE)
    except BrokenPipeError:
        # The reader of the output has closed it, as `head` does; the rest of the buffer goes to the null device.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(UNAVAILABLE)
    except _aws_errors() as error:
        print_error(f"AWS: {error}")
        sys.exit(UNAVAILABLE)


def _aws_errors() -> tuple[type[Exception], ...]:
    """Return the error classes of AWS calls; imported only when an error occurs, since the import is slow."""
    from botocore.exceptions import BotoCoreError, ClientError

    return (BotoCoreError, ClientError)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value alone
    if wanted:
        print_line(f"signalbox {__version__}")
        raise typer.Exit


@app.callback()
def signalbox(
    *,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Handle the options before a command."""


app.command()(destroy)


@app.command()
def deploy(
    *,
    context: Annotated[
        list[str] | None, typer.Option("--context", "-c", metavar="KEY=VALUE", help="A deployment setting; repeatable.")
    ] = None,
    bootstrap: Annotated[
        bool, typer.Option("--bootstrap", help="Bootstrap the account and region for CDK first; needed once.")
    ] = False,
    skip_doctor: Annotated[
        bool, typer.Option("--skip-doctor", help="Do not examine the account first, as `signalbox doctor` does.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Deploy even if the doctor finds an obstacle.")] = False,
) -> None:
    """Deploy to the AWS account of your standard credentials; asks before it widens permissions."""
    from signalbox.local.cdk import deploy_to_aws
    from signalbox.local.files import require_checkout

    require_checkout()
    if not skip_doctor:
        _examine(context or [], bootstraps=bootstrap, force=force)
    raise typer.Exit(deploy_to_aws(context or [], bootstrap=bootstrap))


def _examine(context: list[str], *, bootstraps: bool, force: bool) -> None:
    """Run the doctor; end the command if a deployment would fail."""
    from signalbox.doctor.findings import has_stop

    if has_stop(examine(context, bootstraps=bootstraps, on_finding=print_finding)) and not force:
        print_error(
            "the deployment would fail, or its stage would not work: see the lines that begin with `stop`\n"
            "`--force` deploys nevertheless, `--skip-doctor` without looking"
        )
        raise typer.Exit(UNAVAILABLE)
