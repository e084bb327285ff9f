"""Write the layers into docs/architecture.md, or print the map of modules: `python -m tests.docs.architecture [map]`.

The layers are the import contracts of pyproject.toml. The map has the first line of each module.
"""

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.docs.markdown import with_section

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
PACKAGES = ("signalbox", "packages", "lambdas", "stacks", "glue_jobs", "web")
MARKS = ("<!-- layers: written by tests/docs/architecture.py -->", "<!-- /layers -->")


def page(text: str) -> str:
    """Return the page with its generated part updated."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return with_section(text, *MARKS, layers(contracts))


def layers(contracts: list[Mapping[str, Any]]) -> str:
    """Return the layers of the contracts, from the outermost to the innermost, and the names of the other contracts."""
    ordered = [contract for contract in contracts if contract["type"] == "layers"]
    others = [contract for contract in contracts if contract["type"] != "layers"]
    blocks = "".join(f"{_caption(one)}```text\n{_stacked(one['layers'])}```\n\n" for one in ordered)
    return f"{blocks}Further contracts:\n\n" + "".join(f"- {_sentence(contract['name'])}.\n" for contract in others)


def _caption(contract: Mapping[str, Any]) -> str:
    """Return the line above the layers of a package."""
    return "".join(f"Of `{package.replace('.', '/')}/`:\n\n" for package in contract.get("containers", ()))


def _stacked(names: list[str]) -> str:
    return "".join(f"{number:2}  {layer}\n" for number, layer in enumerate(names, start=1))


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def module_map(root: Path) -> str:
    """Return a table for each folder of the packages, with the first line of each of its modules."""
    folders = defaultdict[Path, list[Path]](list)
    for path in sorted(path for package in PACKAGES for path in (root / package).rglob("*")):
        if path.suffix in (".py", ".js"):
            folders[path.parent].append(path)
    order = sorted(folders, key=lambda folder: (PACKAGES.index(folder.relative_to(root).parts[0]), folder.parts))
    return "\n".join(_folder(root, folder, folders[folder]) for folder in order)


def _folder(root: Path, folder: Path, modules: list[Path]) -> str:
    about = [_first_line(module) for module in modules if module.name == "__init__.py"]
    rows = [(module.name, _first_line(module)) for module in modules if module.name != "__init__.py"]
    introduction = "".join(f"{line}.\n\n" for line in about if line)
    table = "| Module | Contents |\n|---|---|\n" if rows else ""
    cells = "".join(f"| `{name}` | {line} |\n" for name, line in rows)
    return f"### `{folder.relative_to(root).as_posix()}/`\n\n{introduction}{table}{cells}".rstrip("\n") + "\n"


def _first_line(module: Path) -> str:
    source = module.read_text()
    text = (ast.get_docstring(ast.parse(source)) if module.suffix == ".py" else _first_comment(source)) or ""
    return next(iter(text.splitlines()), "").removesuffix(".").replace("|", r"\|")


def _first_comment(source: str) -> str:
    first = next(iter(source.splitlines()), "")
    return first.lstrip("/* ").removesuffix("*/").strip() if first.startswith(("//", "/*")) else ""


def undocumented(root: Path) -> Iterator[str]:
    """Yield the modules without a first line for the map."""
    for package in PACKAGES:
        for module in sorted((root / package).rglob("*.py")):
            if not _first_line(module):
                yield module.relative_to(root).as_posix()


if __name__ == "__main__":
    if sys.argv[1:] == ["map"]:
        sys.stdout.write(module_map(ROOT))
    else:
        PAGE.write_text(page(PAGE.read_text()))
