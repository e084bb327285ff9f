"""The Python packages that the Lambda runtime contains: boto3 with its dependencies, without others."""

import compileall
import importlib.metadata
import re
from pathlib import Path

# Most functions import its botocore alone; our layer does not contain it.
PACKAGE = "boto3"


def link_runtime(folder: Path) -> None:
    """Link the runtime's packages into a folder, with bytecode as Lambda has it."""
    for package in _distributions(PACKAGE):
        _link(package, folder)
    compileall.compile_dir(folder, quiet=2)
    for path in folder.iterdir():
        if path.is_dir():  # which are links, and those are left out above
            compileall.compile_dir(path, quiet=2)


def _distributions(name: str, seen: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return a distribution and all its dependencies."""
    if name in seen:
        return seen
    seen |= {name}
    for requirement in importlib.metadata.requires(name) or ():
        if "extra ==" not in requirement:
            seen = _distributions(re.split(r"[^\w-]", requirement)[0], seen)
    return seen


def _link(distribution: str, folder: Path) -> None:
    """Link the modules of one distribution into a folder, without other distributions."""
    for file in importlib.metadata.files(distribution) or ():
        top = file.parts[0]
        if not top.endswith((".dist-info", "..")) and top != "__pycache__" and not (folder / top).exists():
            (folder / top).symlink_to(Path(str(importlib.metadata.distribution(distribution).locate_file(top))))
