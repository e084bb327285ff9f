"""Write the properties of the constructs into docs/cdk.md: `python -m tests.docs.constructs`."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stacks.constructs import Exchange, Live, Options, Rendezvous, Splitting
from tests.docs.markdown import with_section

PAGE = Path(__file__).parents[2] / "docs" / "cdk.md"
BEGIN, END = "<!-- constructs: written by tests/docs/constructs.py -->", "<!-- /constructs -->"


def section() -> str:
    """Return the properties and methods of each construct in Markdown."""
    return "".join("\n".join(_of(kind)) + "\n\n" for kind in (Exchange, Live, Splitting, Rendezvous, Options))


def _of(kind: Any) -> Iterator[str]:
    yield f"### `{kind.__name__}`\n\n{inspect.getdoc(kind)}\n\n| Property | Type | Default |\n|---|---|---|"
    for one in inspect.signature(kind.__init__).parameters.values():
        if one.name not in ("self", "scope", "name"):
            default = "required" if one.default is one.empty else _default(one.default)
            yield f"| `{one.name}` | `{_type(one.annotation)}` | {default} |".replace(" | None`", "`, optional")
    methods = [(name, one) for name, one in vars(kind).items() if inspect.isfunction(one) and name[0] != "_"]
    if methods:
        yield "\n| Method | |\n|---|---|"
        yield from (f"| `{name}` | {inspect.getdoc(one)} |" for name, one in methods)


def _default(value: object) -> str:
    if value is None:
        return ""
    return "that of `Options`" if isinstance(value, Options) else f"`{getattr(value, 'name', value)}`"


def _type(annotation: Any) -> str:
    text = inspect.formatannotation(annotation)
    for module in ("collections.abc.", "aws_cdk.aws_", "stacks.constructs.", "aws_cdk."):
        text = text.replace(module, "")
    return text


def page(text: str) -> str:
    """Return the page with its tables updated."""
    return with_section(text, BEGIN, END, section())


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
