"""Headings, links, tables and blocks of code of the pages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PARSER = MarkdownIt("commonmark").enable("table")


def with_section(text: str, begin: str, end: str, written: str) -> str:
    """Return a page's text with the lines between two marks replaced."""
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n{written}{end}{after}"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Block:
    """A fenced block of code: its language, the rest of its first line, its text and its position."""

    language: str
    kind: str
    code: str
    place: str


def blocks(page: Path) -> Iterator[Block]:
    for token in PARSER.parse(page.read_text()):
        if token.type == "fence":
            language, _, kind = token.info.strip().partition(" ")
            yield Block(language, kind, token.content, f"{name_of(page)}:{token.map[0] + 1}")


def links(page: Path) -> Iterator[str]:
    """Yield the target of each link and picture."""
    for token in PARSER.parse(page.read_text()):
        for child in token.children or ():
            if child.type in ("link_open", "image"):
                yield str(child.attrs.get("href") or child.attrs.get("src"))


def headings(page: Path, level: int | None = None) -> list[str]:
    tokens = PARSER.parse(page.read_text())
    return [
        tokens[place + 1].content
        for place, token in enumerate(tokens)
        if token.type == "heading_open" and level in (None, int(token.tag[1]))
    ]


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings(page)}


def section(page: Path, heading: str) -> str:
    """Return the text from a heading to the next one of its level or above."""
    level = next(line.split(" ")[0] for line in page.read_text().splitlines() if line.lstrip("#") == f" {heading}")
    _, _, rest = page.read_text().partition(f"\n{level} {heading}\n")
    return re.split(rf"^#{{1,{len(level)}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def entries(text: str) -> list[str]:
    """Return the words in code style in the first cells of the tables."""
    rows = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| `")]
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row)]


def rows(text: str) -> dict[str, list[str]]:
    """Return the cells of each row after the first one, by the first cell's word."""
    found = {}
    for line in text.splitlines():
        if line.startswith("| `"):
            first, *others = line.strip("| ").split(" | ")
            found[first.strip("` ")] = others
    return found
