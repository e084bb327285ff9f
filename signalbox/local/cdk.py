"""The CDK app: synthesized without a network or credentials, deployed to the emulator, or by the CDK CLI to AWS."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from signalbox.errors import RejectedError, UnavailableError
from signalbox.local import tools
from signalbox.local.assembly import deployment
from signalbox.local.assembly.artifacts import DefaultPlace, artifacts_of, stack_artifacts
from signalbox.local.emulator import lifecycle
from signalbox.local.emulator.lifecycle import Emulator
from signalbox.local.emulator.program import ACCOUNT
from signalbox.local.files import CHECKOUT
from signalbox.local.progress import Say, output_of

QUALIFIER = "hnb659fds"  # CDK's default, part of the name of the assets bucket
APP_ERROR = "error: "
# What the CDK CLI adds to the context, and that assets are deployed from where they are.
CONTEXT = {"aws:cdk:enable-path-metadata": True, "aws:cdk:disable-asset-staging": True}


def synthesize(assembly: Path, *, context: Iterable[str], say: Say, app_folder: Path = CHECKOUT) -> None:
    """Write the app's templates for these settings, into a new folder.

    Runs the app as the CDK CLI does. Without the CLI it starts two seconds earlier, and without the CLI's default, the
    validation of the templates, it takes a third of the time: `make check` validates them. Assets are not copied.
    Raises `RejectedError` with the app's own messages if the settings are invalid.
    """
    configuration = json.loads((app_folder / "cdk.json").read_text())
    settings = dict(setting.partition("=")[::2] for setting in context)
    given = {**configuration.get("context", {}), **CONTEXT, **settings}
    shutil.rmtree(assembly, ignore_errors=True)
    # No credentials and no metadata service: synthesis must not depend on who runs it.
    environment = {
        **tools.hermetic_environment(os.environ),
        "CDK_OUTDIR": str(assembly.absolute()),
        "CDK_CONTEXT_JSON": json.dumps(given),
        "CDK_VALIDATION": "false",
    }
    command = app_command(configuration["app"])
    status, tail = output_of(command, folder=app_folder, environment=environment, say=say)
    if status:
        raise _synthesis_error(tail)


def app_command(app: str) -> list[str]:
    """Return the command of `cdk.json` with this Python, whatever `python3` is here."""
    program, *words = shlex.split(app)
    return [sys.executable if program == "python3" else program, *words]


def _synthesis_error(tail: list[str]) -> RejectedError | UnavailableError:
    problems = [line.removeprefix(APP_ERROR) for line in tail if line.startswith(APP_ERROR)]
    if problems:
        return RejectedError("\n".join(problems))
    return UnavailableError("\n".join(["the app could not be synthesized:", *tail]))


def deploy(assembly: Path, *, emulator: Emulator, say: Say) -> None:
    """Deploy every stack of a synthesized app into the emulator. Raises `UnavailableError` with the causes."""
    bootstrap(emulator)
    deployment.deploy(assembly, emulator.session(), DefaultPlace(ACCOUNT, emulator.region), say)


def bootstrap(emulator: Emulator) -> None:
    """Create the assets bucket and the version of `cdk bootstrap`, which a deployment with plain credentials needs."""
    version = f"/cdk-bootstrap/{QUALIFIER}/version"
    emulator.session().client("ssm").put_parameter(Name=version, Value="30", Type="String", Overwrite=True)
    s3 = emulator.session().client("s3")
    name = f"cdk-{QUALIFIER}-assets-{ACCOUNT}-{emulator.region}"
    with suppress(s3.exceptions.BucketAlreadyOwnedByYou):
        if emulator.region == "us-east-1":  # S3 rejects this region as a location constraint
            s3.create_bucket(Bucket=name)
        else:
            location = {"LocationConstraint": emulator.region}
            s3.create_bucket(Bucket=name, CreateBucketConfiguration=location)  # type: ignore[arg-type]  # any region's name


def stacks(assembly: Path) -> list[str]:
    """Return the names of the stacks in a synthesized app."""
    place = DefaultPlace(ACCOUNT, lifecycle.REGION)
    return [artifact.name for artifact in stack_artifacts(artifacts_of(assembly), place)]


def deploy_to_aws(context: Iterable[str], *, bootstrap: bool, approve: bool) -> int:
    """Deploy with the standard AWS credentials and the CDK CLI in the foreground; return its exit status."""
    settings = [word for setting in context for word in ("--context", setting)]
    unasked = ["--require-approval", "never"] if approve else []
    status = _run_in_foreground("bootstrap", settings) if bootstrap else 0
    return status or _run_in_foreground("deploy", ["--all", *unasked, *settings])


def _run_in_foreground(command: str, options: Iterable[str]) -> int:
    words = [*tools.cdk(), command, "--no-notices", *options]
    return subprocess.run(words, cwd=CHECKOUT, env=tools.environment(os.environ), check=False).returncode
