"""Tests that mypy follows the imports of exactly the CDK modules that the stacks use."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

from signalbox.local.files import CHECKOUT

CDK = "aws_cdk"


def test_mypy_reads_the_modules_of_cdk_that_stacks_import_and_no_others() -> None:
    overrides = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    (read,) = (one["module"] for one in overrides if one.get("follow_imports") == "normal")
    sources = [CHECKOUT / "app.py", *CHECKOUT.glob("stacks/**/*.py")]

    imported = {module for source in sources for module in imports_of(source)}

    assert sorted(imported) == [module for module in read if module.startswith(CDK)]


def imports_of(source: Path) -> Iterator[str]:
    """Yield the modules of CDK that a file imports."""
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == CDK:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names if name.name.startswith("aws_"))
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] == CDK)
