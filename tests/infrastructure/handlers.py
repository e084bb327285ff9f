"""The environment variables that handlers read, found in their source code."""

import ast
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

# All handlers write history with this module.
HISTORY = Path(__file__).parents[2] / "lambdas" / "shared" / "instance.py"
POWERTOOLS = {"POWERTOOLS_SERVICE_NAME", "POWERTOOLS_METRICS_NAMESPACE"}


def variables_read(handler: Path, wirings: Sequence[Path]) -> set[str]:
    """Return the variables that a handler reads, directly and through the wiring functions that it uses."""
    wiring = defaultdict(list)
    for path in (*wirings, HISTORY):
        for name, node in _functions(path).items():
            wiring[name].append(node)  # several files may define a function of the same name
    module = ast.parse(handler.read_text())
    found, todo, seen = _settings(module), [module], set()
    while todo:
        for part in ast.walk(todo.pop()):
            name = part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else None
            if name in wiring and name not in seen:
                seen.add(name)
                todo.extend(wiring[name])
                found = found.union(*map(_settings, wiring[name]))
    return found


def _functions(path: Path) -> dict[str, ast.AST]:
    return {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def _settings(node: ast.AST) -> set[str]:
    """Return the variable names in a piece of code: its upper-case string constants."""
    texts = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    named = {text for text in texts if text.replace("_", "").isalpha() and text.isupper()}
    return named - {"AWS_ENDPOINT_URL"}  # that of a local stage
