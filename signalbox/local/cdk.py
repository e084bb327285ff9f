"""The CDK app: synthesized without a network or credentials, and deployed to the emulator or to AWS."""

import json
import os
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from signalbox.errors import RejectedError, UnavailableError
from signalbox.local import tools
from signalbox.local.emulator.lifecycle import ACCOUNT, Emulator
from signalbox.local.files import CHECKOUT
from signalbox.local.progress import Say, output_of

FAILED, CAUSES = "_FAILED", 5
QUALIFIER = "hnb659fds"  # CDK's default, part of the name of the assets bucket
APP_ERROR = "error: "


def synthesize(assembly: Path, *, context: Iterable[str], say: Say, app_folder: Path = CHECKOUT) -> None:
    """Write the app's templates for these settings.

    Raises `RejectedError` with the app's own messages if the settings are invalid.
    """
    settings = [word for setting in context for word in ("--context", setting)]
    command = [*tools.cdk(), "synth", "--quiet", "--no-notices", "--output", str(assembly), *settings]
    # No credentials and no metadata service: synthesis must not depend on who runs it.
    status, tail = output_of(command, folder=app_folder, environment=tools.hermetic_environment(os.environ), say=say)
    if status:
        raise _synthesis_error(tail)


def _synthesis_error(tail: list[str]) -> RejectedError | UnavailableError:
    problems = [line.removeprefix(APP_ERROR) for line in tail if line.startswith(APP_ERROR)]
    if problems:
        return RejectedError("\n".join(problems))
    return UnavailableError("\n".join(["the app could not be synthesized:", *tail]))


def deploy(assembly: Path, *, emulator: Emulator, say: Say) -> None:
    """Deploy every stack of a synthesized app into the emulator."""
    _make_assets_bucket(emulator)
    causes: list[str] = []

    def hear(line: str) -> None:
        if FAILED in line:
            causes.append(line)
        say(line)

    options = ["--all", "--require-approval", "never", "--no-notices", "--progress", "events"]
    status, tail = output_of(
        [*tools.cdk(), "deploy", "--app", str(assembly), *options],
        folder=assembly,
        environment={**tools.hermetic_environment(os.environ), **_credentials(emulator), "CI": "true"},
        say=hear,
    )
    if status:
        # What the deletion of everything else says is longer than the tail.
        raise UnavailableError("\n".join(["the deployment failed:", *causes[:CAUSES], *tail]))


def _credentials(emulator: Emulator) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": emulator.endpoint_url,
        "AWS_REGION": emulator.region,
        "AWS_ACCESS_KEY_ID": emulator.administrator.access_key_id,
        "AWS_SECRET_ACCESS_KEY": emulator.administrator.secret_access_key,
    }


def _make_assets_bucket(emulator: Emulator) -> None:
    """Create the assets bucket, the only resource of `cdk bootstrap` that a deployment with plain credentials needs."""
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
    artifacts = json.loads((assembly / "manifest.json").read_text())["artifacts"]
    return [
        artifact.get("properties", {}).get("stackName", name)
        for name, artifact in artifacts.items()
        if artifact["type"] == "aws:cloudformation:stack"
    ]


def deploy_to_aws(context: Iterable[str], *, bootstrap: bool) -> int:
    """Deploy with the standard AWS credentials and the CDK CLI in the foreground; return its exit status."""
    settings = [word for setting in context for word in ("--context", setting)]
    status = _run_in_foreground("bootstrap", settings) if bootstrap else 0
    return status or _run_in_foreground("deploy", ["--all", *settings])


def _run_in_foreground(command: str, options: Iterable[str]) -> int:
    words = [*tools.cdk(), command, "--no-notices", *options]
    return subprocess.run(words, cwd=CHECKOUT, env=tools.environment(os.environ), check=False).returncode
