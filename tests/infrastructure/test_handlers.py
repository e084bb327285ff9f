"""The environment variables of functions are those that their handlers read, found in their source code."""

import ast
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.infrastructure.templates import ROOT, templates

LAMBDAS = ROOT / "lambdas"
# All handlers write history with this module.
HISTORY = LAMBDAS / "shared" / "instance.py"
POWERTOOLS = {"POWERTOOLS_SERVICE_NAME", "POWERTOOLS_METRICS_NAMESPACE"}
ENDPOINT = "AWS_ENDPOINT_URL"  # that of a local stage
RENDEZVOUS = "wiring deliveries"
MODULES = {
    "Exchange/Control": ("control", "wiring control_wiring"),
    "Exchange/Route": ("route", "wiring route_wiring"),
    "Live/Connect": ("connect", "wiring arvados"),
    "Live/Deliver": ("deliver", "wiring deliver_wiring"),
    "Live/Overview": ("overview", "wiring overview_wiring"),
    "Live/Page": ("page", "page_wiring"),
    "Live/Receive": ("receive", "wiring"),
    "Live/Session": ("session", "wiring session_wiring"),
    "Rendezvous/Offer": ("offer", RENDEZVOUS),
    "Rendezvous/Sweep": ("sweep", RENDEZVOUS),
    "Doors/Clients": ("clients page", RENDEZVOUS),
    "Doors/Proxies": ("proxies page", RENDEZVOUS),
    "Splitting/Control": ("control", "wiring control_wiring target_wiring"),
    "Splitting/Split": ("split", "wiring"),
}
"""The modules of a function's handlers, that of the function first, and the modules of its wiring."""


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
    return named - {ENDPOINT}


@pytest.mark.parametrize("function", MODULES)
def test_a_function_has_exactly_the_variables_that_its_handler_reads(stage, function):
    found = templates(local=True) if function.startswith("Live/") else stage  # only the emulator has `Receive`
    properties = found.every("AWS::Lambda::Function")[function]["Properties"]
    folder = LAMBDAS / function.replace("Doors", "Rendezvous").partition("/")[0].lower()
    handlers, wirings = ([folder / f"{name}.py" for name in names.split()] for names in MODULES[function])

    assert properties["Handler"] == f"lambdas.{folder.name}.{handlers[0].stem}.handler"
    read = set().union(*(variables_read(handler, wirings) for handler in handlers))
    assert set(properties["Environment"]["Variables"]) - POWERTOOLS - {ENDPOINT} == read


@pytest.mark.parametrize(
    ("function", "variable", "other"),
    [
        ("Exchange/Route", "EXCHANGE_CONTROL_ROLE_ID", "Exchange/Control"),
        ("Exchange/Control", "ROUTE_ROLE_ID", "Exchange/Route"),
        ("Exchange/Route", "LIVE_SESSION_ROLE_ID", "Live/Session"),  # whose publications the router accepts
    ],
)
def test_a_function_knows_the_roles_of_those_that_send_to_it(stage, function, variable, other):
    functions = stage.every("AWS::Lambda::Function")

    known = functions[function]["Properties"]["Environment"]["Variables"][variable]
    role, _ = functions[other]["Properties"]["Role"]["Fn::GetAtt"]
    assert known == {"Fn::GetAtt": [role, "RoleId"]}
