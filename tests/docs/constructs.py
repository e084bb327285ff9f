"""Write the properties of the constructs into docs/cdk.md: `python -m tests.docs.constructs`."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

from stacks.capability import DEFAULTS, Properties
from stacks.constructs import Exchange, Issuer, Live, Rendezvous, Splitting
from tests.docs.markdown import with_section

PAGE = Path(__file__).parents[2] / "docs" / "cdk.md"
BEGIN, END = "<!-- constructs: written by tests/docs/constructs.py -->", "<!-- /constructs -->"


def section() -> str:
    """Return the properties and methods of each construct in Markdown."""
    lines = [*(line for kind in (Exchange, Live, Splitting, Rendezvous) for line in _construct(kind))]
    lines += _keys(Properties, DEFAULTS)
    lines += _keys(Issuer, dict.fromkeys(Issuer.__optional_keys__))
    return "\n".join(lines) + "\n\n"


def _construct(kind: Any) -> Iterator[str]:
    yield _heading(kind)
    for one in inspect.signature(kind.__init__).parameters.values():
        if one.name not in ("self", "scope", "name", "properties"):
            yield _row(one.name, one.annotation, "required" if one.default is one.empty else _default(one.default))
    methods = [(name, one) for name, one in vars(kind).items() if inspect.isfunction(one) and name[0] != "_"]
    if methods:
        yield "\n| Method | |\n|---|---|"
        yield from (f"| `{name}` | {' '.join(str(inspect.getdoc(one)).split())} |" for name, one in methods)
    yield ""


def _keys(kind: Any, defaults: Any) -> Iterator[str]:
    yield _heading(kind)
    is_optional = not kind.__required_keys__
    for name, annotation in get_type_hints(kind).items():
        yield _row(name, annotation, _default(defaults.get(name)) if is_optional or name in defaults else "required")
    yield ""


def _heading(kind: Any) -> str:
    return f"### `{kind.__name__}`\n\n{inspect.getdoc(kind)}\n\n| Property | Type | Default |\n|---|---|---|"


def _row(name: str, annotation: Any, default: str) -> str:
    return f"| `{name}` | `{_type(annotation)}` | {default} |".replace(" | None`", "`, optional")


def _default(value: object) -> str:
    return "" if value in (None, ()) else f"`{getattr(value, 'name', value)}`"


def _type(annotation: Any) -> str:
    text = inspect.formatannotation(annotation)
    for module in ("collections.abc.", "typing.", "aws_cdk.aws_", "stacks.constructs.", "aws_cdk."):
        text = text.replace(module, "")
    return text


def page(text: str) -> str:
    """Return the page with its tables updated."""
    return with_section(text, BEGIN, END, section())


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
