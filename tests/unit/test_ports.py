"""A class names at most five ports; a class that needs more does two things."""

import ast
import re
from collections.abc import Iterator

from signalbox.local.files import CHECKOUT

MOST = 5
CLASSES = [
    node
    for folder in ("signalbox", "lambdas")
    for path in sorted((CHECKOUT / folder).rglob("*.py"))
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.ClassDef)
]


def test_a_class_names_at_most_five_ports() -> None:
    protocols = {one.name for one in CLASSES if any(ast.unparse(base).startswith("Protocol") for base in one.bases)}

    named = {one.name: sum(bool(words & protocols) for words in _given(one)) for one in CLASSES}

    assert {"OfferService", "ControlPorts"} <= {name for name, count in named.items() if count > 0}
    assert {name: count for name, count in named.items() if count > MOST} == {}


def _given(found: ast.ClassDef) -> Iterator[set[str]]:
    """Yield the names in the type of each field and of each parameter of the constructor."""
    for node in found.body:
        if isinstance(node, ast.AnnAssign):
            yield _names(node.annotation)
        elif isinstance(node, ast.FunctionDef) and node.name == "__init__":
            parameters = (*node.args.args, *node.args.kwonlyargs)
            yield from (_names(one.annotation) for one in parameters if one.annotation)


def _names(annotation: ast.expr) -> set[str]:
    return set(re.findall(r"\w+", ast.unparse(annotation)))
