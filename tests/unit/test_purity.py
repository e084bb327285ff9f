"""The core is pure: it opens no connection.

The contracts of import-linter (pyproject.toml) forbid whole packages. The core needs `urllib.parse`, so the rest of
`urllib` is forbidden here.
"""

import ast
from pathlib import Path

import pytest

from signalbox.local.files import CHECKOUT

CORE = ("rendezvous", "splitting", "exchange", "live", "sarracenia", "history", "activity", "control")
FORBIDDEN = {"urllib.request", "urllib.error", "urllib.robotparser", "urllib.response"}
SOURCES = [path for part in CORE for path in sorted((CHECKOUT / "signalbox" / part).rglob("*.py"))]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.relative_to(CHECKOUT).as_posix())
def test_a_module_of_the_core_uses_urllib_for_parsing_only(source: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            imported |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            imported |= {name.name for name in node.names}

    assert not imported & FORBIDDEN
