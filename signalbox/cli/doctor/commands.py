"""`signalbox doctor`: examines the account and the region before a deployment."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Annotated

import typer

from signalbox.cli.doctor.settings import read_settings
from signalbox.cli.shared.output import print_json, print_line
from signalbox.cli.shared.stage import Json, say
from signalbox.doctor.findings import Finding, has_stop

STOPPED = 1
Context = Annotated[
    list[str] | None, typer.Option("--context", "-c", metavar="KEY=VALUE", help="A deployment setting; repeatable.")
]


def doctor(*, context: Context = None, as_json: Json = False) -> None:
    """Examine requirements that no deployment reports; change nothing; exit with 1 if a deployment would fail."""
    found = examine(context or [], on_finding=_keep_silent if as_json else print_finding)
    if as_json:
        print_json({"ready": not has_stop(found), "findings": list(map(asdict, found))})
    if has_stop(found):
        raise typer.Exit(STOPPED)


def examine(context: Iterable[str], *, on_finding: Callable[[Finding], None]) -> Sequence[Finding]:
    """Return all findings; `on_finding` receives each when it arrives. Raises `InvalidSettings`."""
    say("examining the credentials and the account")  # at once: what follows loads the CDK

    from signalbox.cli.doctor.examination import findings

    found = []
    for finding in findings(read_settings(context)):
        found.append(finding)
        on_finding(finding)
    return found


def _keep_silent(_finding: Finding) -> None: ...


def print_finding(finding: Finding) -> None:
    """Print a finding and its remedy."""
    print_line(f"{finding.verdict:<4}  {finding.check}: {finding.text}")
    if finding.remedy:
        print_line(f"      → {finding.remedy}")
    sys.stdout.flush()
