"""The words that docstrings, comments, messages and pages do not use, and the check for them.

`python -m tests.docs.prose PATH…` prints `file:line: words: excerpt` for each use, then the count of each folder.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

BANNED: dict[str, str] = tomllib.loads(Path(__file__).with_name("banned.toml").read_text(encoding="utf-8"))
# What a docstring does not begin with.
BANNED_STARTS = {
    r"\w+ what\b": "the noun, as in: Return the …",
    r"Say\b": "Return whether …, Report …",
    r"Whether\b": "Return whether …",
}
# Files that quote another program's or a protocol's text, with the reason.
EXEMPT = {
    "tests/docs/prose.py": "this list",
    "tests/docs/test_prose.py": "the list's cases",
    "docs/style.md": "shows what not to write",
}
# Quotations in a file, which are left out before it is searched: path, then the quoted texts.
QUOTED: dict[str, tuple[str, ...]] = {
    # The reason of a history event, which is stored.
    "signalbox/exchange/control/scheduled_tasks.py": ("nobody consumed from it for as long as it was to stay without",),
    "tests/unit/exchange/control/test_expiry.py": ("nobody consumed from it for as long as it was",),
    "signalbox/live/outbox/events.py": ("nobody knows whether a reply was posted",),
    # Fields of stored items and of control messages.
    "signalbox/live/session/inbox.py": ("heard: expected one of",),
    "tests/handlers/live/test_session.py": ("heard: expected one of",),
    "tests/unit/live/log/test_documents.py": ('{"heard": "lost"}',),
}
# How a line's comment begins, where strings are not prose either. Files of other kinds are prose as a whole.
COMMENT = {".toml": "#", ".conf": "#", ".example": "#", ".rb": "#", ".go": "//", ".js": "//", ".mjs": "//", ".txt": "#"}
PROSE = (".md", ".html", ".svg")
STARTED = re.compile("|".join(f"(?:{start})" for start in BANNED_STARTS))
WORDS = [re.compile(rf"(?<!\w)(?:{expression})(?!\w)".replace(" ", r"\s+"), re.IGNORECASE) for expression in BANNED]


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of prose, the line on which it begins, and whether it is a docstring."""

    text: str
    line: int
    docstring: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A banned expression in a file."""

    file: str
    line: int
    words: str
    excerpt: str

    def __str__(self) -> str:
        """Return the finding as compilers print theirs."""
        return f"{self.file}:{self.line}: {self.words}: {self.excerpt}"


def findings(paths: Iterable[str], root: Path) -> Iterator[Finding]:
    """Yield the banned expressions of the files at or below paths, which are relative to `root`."""
    for name in _files(paths, root):
        if name not in EXEMPT:
            yield from findings_in(name, (root / name).read_text())


def findings_in(name: str, source: str) -> list[Finding]:
    """Return the banned expressions of a file's source, in the order of its lines."""
    for quotation in QUOTED.get(name, ()):
        source = source.replace(quotation, _blank(quotation))
    return sorted(finding for passage in _passages(name, source) for finding in _found(name, passage))


def _files(paths: Iterable[str], root: Path) -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *paths], cwd=root, capture_output=True, text=True, check=True
    )
    kinds = {".py", *PROSE, *COMMENT}
    names = (name for name in set(listed.stdout.splitlines()) if Path(name).suffix in kinds)
    return sorted(name for name in names if (root / name).exists())


def _found(name: str, passage: Passage) -> Iterator[Finding]:
    matches = [match for words in WORDS for match in words.finditer(passage.text)]
    start = STARTED.match(passage.text) if passage.docstring else None
    for match in [*matches, start] if start else matches:
        line = passage.line + passage.text.count("\n", 0, match.start())
        excerpt = " ".join(passage.text[max(0, match.start() - 40) : match.end() + 40].split())
        yield Finding(name, line, " ".join(match.group().split()), excerpt)


def _passages(name: str, source: str) -> Iterator[Passage]:
    suffix = Path(name).suffix
    if suffix == ".py":
        yield from _python_comments(source)
        yield from _python_strings(source)
    elif suffix in PROSE:
        yield Passage(_without_code(source), 1)
    else:
        yield from _line_comments(source, COMMENT[suffix])


def _python_comments(source: str) -> Iterator[Passage]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    yield from _joined((token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT)


def _line_comments(source: str, mark: str) -> Iterator[Passage]:
    """Yield the comments of a language whose strings are left alone, JavaScript's block comments included."""
    comment = re.compile(rf"(?:(?<![:\w]){re.escape(mark)}| /?\*).*" if mark == "//" else rf"(?<!\S){mark}.*")
    found = ((number, comment.search(line)) for number, line in enumerate(source.splitlines(), start=1))
    yield from _joined((number, match.group()) for number, match in found if match)


def _joined(comments: Iterable[tuple[int, str]]) -> Iterator[Passage]:
    """Yield comments, those of consecutive lines as one."""
    first, lines = 0, list[str]()
    for number, comment in comments:
        if lines and number != first + len(lines):
            yield Passage("\n".join(lines), first)
            lines = []
        first = first if lines else number
        lines.append(_without_code(comment.lstrip("#/* ")))
    if lines:
        yield Passage("\n".join(lines), first)


def _python_strings(source: str) -> Iterator[Passage]:
    """Yield docstrings, and the strings of more than one word: messages, help texts and names of test cases."""
    nodes = list(ast.walk(ast.parse(source)))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_prose(node.value):
            yield Passage(_without_code(node.value), node.lineno, docstring=id(node) in docstrings)


def _is_prose(text: str) -> bool:
    return " " in text.strip() and not text.lstrip().startswith(("{", "["))


def _without_code(text: str) -> str:
    """Return prose with blanks for code, comments of HTML and the targets of links."""
    code = r"^ *```.*?^ *```|`[^`\n]*`|<!--.*?-->|<script.*?</script>|\]\([^)\s]*\)"
    return re.sub(code, lambda match: _blank(match.group()), text, flags=re.DOTALL | re.MULTILINE)


def _blank(text: str) -> str:
    return re.sub(r"\S", "_", text)


def main() -> None:
    """Print the findings of the paths given, or of the whole tree, and their count for each folder."""
    found = list(findings(sys.argv[1:] or ["."], Path.cwd()))
    for finding in found:
        sys.stdout.write(f"{finding}\n")
    for folder, number in sorted(Counter(str(Path(finding.file).parent) for finding in found).items()):
        sys.stderr.write(f"{number:6} {folder}\n")
    sys.stderr.write(f"{len(found):6} in all\n")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
