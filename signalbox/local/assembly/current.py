"""The steps that a deployment needs: a stage whose sources are unchanged is not synthesized or deployed again."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import boto3

from signalbox.clients.stage_session import found_stack
from signalbox.local.assembly.artifacts import DefaultPlace, artifacts_of, assets
from signalbox.local.assembly.deployment import COMPLETE
from signalbox.local.emulator.lifecycle import Emulator
from signalbox.local.emulator.program import ACCOUNT
from signalbox.local.files import read_json
from signalbox.local.stage_folder import StageFolder

SOURCES = "sources"  # the file of an assembly with the digest of what it was made of


def synthesized(assembly: Path, digest: str, synthesize: Callable[[Path], None]) -> None:
    """Synthesize an assembly unless it is of the same sources and its assets exist."""
    if _digest_of(assembly) == digest and _is_whole(assembly):
        return
    (assembly / SOURCES).unlink(missing_ok=True)
    synthesize(assembly)
    (assembly / SOURCES).write_text(digest)


def _digest_of(assembly: Path) -> str | None:
    try:
        return (assembly / SOURCES).read_text()
    except FileNotFoundError:
        return None


def _is_whole(assembly: Path) -> bool:
    """Return whether all assets exist: they are outside of the assembly."""
    return all(asset.path.exists() for asset in assets(assembly, artifacts_of(assembly), DefaultPlace(ACCOUNT, "")))


def deployment_of(session: boto3.Session, stacks: Iterable[str], digest: str | None) -> dict[str, Any]:
    """Return the identity of a deployment: the digest of its sources, and of each stack its id and its last update."""
    return {"sources": digest, "stacks": {name: _identity(session, name) for name in stacks}}


def _identity(session: boto3.Session, name: str) -> list[str] | None:
    """Return a stack's id, status and last update, or None unless it is complete."""
    stack = found_stack(session.client("cloudformation"), name)
    if stack is None or stack["StackStatus"] not in COMPLETE:
        return None
    return [stack["StackId"], stack["StackStatus"], str(stack.get("LastUpdatedTime", stack["CreationTime"]))]


def current_stage(stage_folder: StageFolder, running: Emulator, digest: str | None) -> dict[str, Any] | None:
    """Return the content of `local.json` if these sources are deployed and their stacks are unchanged since."""
    local = read_json(stage_folder.local)
    recorded = local and local.get("deployment")
    if local is None or recorded is None or digest is None or recorded["sources"] != digest:
        return None
    present = deployment_of(running.session(), recorded["stacks"], digest)
    return local if present == recorded and None not in present["stacks"].values() else None
