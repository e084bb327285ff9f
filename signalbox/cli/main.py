"""The `signalbox` command: one group of commands per capability, and one for the local stage."""

import os
import re
import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from signalbox import __version__
from signalbox.cli import local
from signalbox.cli.activity.top import top
from signalbox.cli.destroy.command import destroy
from signalbox.cli.doctor.commands import doctor, examine, print_finding
from signalbox.cli.exchange import commands as exchange
from signalbox.cli.history import commands as history
from signalbox.cli.history import keep
from signalbox.cli.history.replay import replay
from signalbox.cli.history.trace import trace
from signalbox.cli.live import bridge
from signalbox.cli.live import commands as live
from signalbox.cli.rendezvous import commands as rendezvous
from signalbox.cli.sarracenia import commands as sarracenia
from signalbox.cli.shared.kept_settings import Reset
from signalbox.cli.shared.output import print_error, print_line
from signalbox.cli.shared.signals import Interrupted
from signalbox.cli.shared.stage import say
from signalbox.cli.splitting import commands as splitting
from signalbox.cli.verify.commands import verify
from signalbox.errors import RejectedError, SignalboxError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from botocore.exceptions import BotoCoreError, ClientError

    from signalbox.cli.shared.kept_settings import SettingsPlan

REJECTED = 2
UNAVAILABLE = 1
INTERRUPTED = 130
# The words of typer's parser, which is pydantic.
PARSERS_WORDS = {
    "Value error, ": "",
    "Input should be a valid integer, unable to parse string as an integer": "expected a whole number",
    "Input should be a valid number, unable to parse string as a number": "expected a number",
    "Input should be": "expected a number",
}
OF_A_STAGE = re.compile(r"No such option: (--aws|--stage|--json)\b")
CHOICE = re.compile(r"'(?P<given>[^']*)' is not one of (?P<expected>.*)")
QUOTED = re.compile(r"'([^']*)'")

app = typer.Typer(
    name="signalbox",
    help="A serverless message broker on AWS.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Subcommands inherit it.
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(local.app, name="local")
app.add_typer(rendezvous.app, name="rendezvous")
app.add_typer(splitting.app, name="split")
exchange.register(app)
sarracenia.register(app)
live.register(app)
app.add_typer(bridge.app, name="arvados")
app.add_typer(history.app, name="history")
app.command()(top)
app.add_typer(keep.app, name="keep")
app.command()(history.report)
app.command()(replay)
app.command()(trace)
app.command()(doctor)
app.command()(verify)


def main() -> None:
    """Run the command line; an error of Signalbox or AWS ends in one line and an exit status."""
    try:
        # Not in Typer's own mode, which draws frames around errors and breaks their lines.
        sys.exit(app(prog_name="signalbox", standalone_mode=False))
    except SignalboxError as error:
        _end(str(error), REJECTED if isinstance(error, RejectedError) else UNAVAILABLE)
    except typer.TyperException as error:
        _end_usage(error)
    except typer.Abort:
        sys.exit(INTERRUPTED)
    except Interrupted as interruption:
        sys.exit(interruption.status)
    except BrokenPipeError:
        # The reader of the output has closed it, as `head` does; the rest of the buffer goes to the null device.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(UNAVAILABLE)
    except _aws_errors() as error:
        from signalbox.cli.shared.aws_errors import explained

        _end(explained(error), UNAVAILABLE)


def _end(text: str, status: int) -> NoReturn:
    print_error(text)
    sys.exit(status)


def _end_usage(error: typer.TyperException) -> NoReturn:
    """Print the error of a command line in one line, then the command that shows the help."""
    text = error.format_message()
    if "\n" in text or not text:  # the whole help, since the command has no words
        sys.stderr.write(text)
        sys.exit(error.exit_code)
    context = getattr(error, "ctx", None)
    help_hint = f"\n`{context.command_path} --help` shows the options" if context else ""
    if (misplaced := OF_A_STAGE.search(text)) and context and context.parent is None:
        help_hint = f"\ngive {misplaced[1]} after the command: `signalbox COMMAND … {misplaced[1]}`"
    _end(_readable(text) + help_hint, error.exit_code)


def _readable(text: str) -> str:
    """Return an error of the parser without its own words, and with the nearest of the values that it lists."""
    for own, ours in PARSERS_WORDS.items():
        text = text.replace(own, ours)
    text = text.rstrip(".")
    choice = CHOICE.search(text)
    if choice is None:
        return text
    near = get_close_matches(choice["given"], QUOTED.findall(choice["expected"]), n=1)
    return text + (f"; did you mean {near[0]!r}?" if near else "")


def _aws_errors() -> "tuple[type[BotoCoreError], type[ClientError]]":
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
    reset: Reset = None,
    bootstrap: Annotated[
        bool, typer.Option("--bootstrap", help="Bootstrap the account and region for CDK first; needed once.")
    ] = False,
    skip_doctor: Annotated[
        bool, typer.Option("--skip-doctor", help="Do not examine the account first, as `signalbox doctor` does.")
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
    settings, problem = _settings_of_stage(context or [], reset or [])
    settings.say()
    if not skip_doctor:
        _examine(settings.context, bootstraps=bootstrap, force=force)
    if problem is not None:
        raise problem  # what the stage keeps is not known
    raise typer.Exit(deploy_to_aws(settings.context, bootstrap=bootstrap))


def _settings_of_stage(context: list[str], reset: list[str]) -> "tuple[SettingsPlan, Exception | None]":
    """Return the settings of a deployment, and the error if those of the stage cannot be read.

    The doctor explains most errors. Raises `InvalidSettings`.
    """
    from signalbox.cli.doctor.settings import InvalidSettings, read_settings
    from signalbox.cli.shared.deployment import settings_session
    from signalbox.cli.shared.kept_settings import new_stage, plan
    from signalbox.local.session import StageMissing, stack_outputs

    config = read_settings(context)
    try:
        outputs = stack_outputs(settings_session(config.region), config.stage)
        return plan(outputs, context, reset=reset), None
    except StageMissing:
        return new_stage(context, reset=reset), None
    except InvalidSettings:
        raise
    except (RejectedError, *_aws_errors()) as error:
        return new_stage(context, reset=reset), error


def _say_place(context: "Sequence[str]") -> None:
    """Name the stage, the region and the folder; the doctor names the account. Raises `InvalidSettings`."""
    from signalbox.cli.doctor.settings import read_settings
    from signalbox.local.files import CHECKOUT

    config = read_settings(context)
    set_regions = (config.region, *(os.environ.get(name) for name in ("AWS_REGION", "AWS_DEFAULT_REGION")))
    region = next(filter(None, set_regions), "the region of your profile")
    say(f"stage {config.stage} in {region}, from {CHECKOUT}")


def _examine(context: "Sequence[str]", *, bootstraps: bool, force: bool) -> None:
    """Run the doctor; end the command if a deployment would fail."""
    from signalbox.doctor.findings import has_stop

    if has_stop(examine(context, bootstraps=bootstraps, on_finding=print_finding)) and not force:
        print_error(
            "the deployment would fail, or its stage would not work: see the lines that begin with `stop`\n"
            "`--force` deploys nevertheless, `--skip-doctor` without looking"
        )
        raise typer.Exit(UNAVAILABLE)
