"""Builds the wheel: the modules of `stacks` under the name `signalbox_cdk`, and the sources of the functions."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

REPOSITORY = Path(__file__).resolve().parents[2]
EXPORTS = '''"""Capabilities of Signalbox as constructs for any CDK app."""

from signalbox_cdk.constructs import Exchange, Issuer, Live, Rendezvous, Splitting

__all__ = ["Exchange", "Issuer", "Live", "Rendezvous", "Splitting"]
'''
# What the functions do not import; packaging.py leaves it out, too.
LEFT_OUT = ("cli", "clients", "flows", "kombu", "local", "__pycache__")


class Hook(BuildHookInterface):  # type: ignore[type-arg]  # hatchling's own configuration
    """Collects the files of the wheel in a folder outside of the checkout."""

    def initialize(self, _version: str, build_data: dict[str, Any]) -> None:
        """Add the collected files to the wheel."""
        self.folder = Path(tempfile.mkdtemp())
        package = self.folder / "signalbox_cdk"
        for path in (REPOSITORY / "stacks").rglob("*.py"):
            target = package / path.relative_to(REPOSITORY / "stacks")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(path.read_text().replace("from stacks.", "from signalbox_cdk."))
        (package / "__init__.py").write_text(EXPORTS)
        (package / "py.typed").touch()
        for name in ("signalbox", "lambdas", "web"):
            shutil.copytree(REPOSITORY / name, package / "source" / name, ignore=_left_out)
        build_data["force_include"][str(package)] = "signalbox_cdk"

    def finalize(self, _version: str, _build_data: dict[str, Any], _artifact_path: str) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder)


def _left_out(folder: str, names: list[str]) -> list[str]:
    is_top = Path(folder).parent == REPOSITORY
    return [name for name in names if name == "__pycache__" or (is_top and name in LEFT_OUT)]
