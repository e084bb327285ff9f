"""Patterns that find a name within a text, in the syntax that means the same to Rust's engine and to Python."""

import json
import re
from dataclasses import dataclass

from signalbox.filters.engines import Engines
from signalbox.filters.patterns import compile_pattern
from signalbox.splitting.model.filters import FilterStopped, InvalidExpression, Span

PART = re.compile(
    r"(?P<same>\((?:(?!\?)|\?(?::|=|!|<=|<!|>|P<\w+>))|[)|^.]|[*+?][?+]?|\{[0-9]*,?[0-9]+\}|\{[0-9]+,\}|\\[1-9Abnrtfva]"
    r"|\[\^?\]?(?:[^\[\]\\&~-]|-(?!-)|\\[dDsSwW]|\\[^\w\s<>])*\]|\\[dDsSwW]|\\[^\w\s<>]"
    r"|[^\[\]\\^$|?*+(){}])"
    r"|(?P<flags>\A\(\?[is]+\))|(?P<end>\$|\\z)|\(\?<(?P<name>[A-Za-z_]\w*)>|\\k<(?P<reference>\w+)>",
    re.DOTALL | re.ASCII,
)
CLASS = re.compile(r"\\[\\dDsSwWbB]")
BACKSLASH = "\\\\"


def compile_capture(text: str, engines: Engines) -> "SandboxedCapture":
    """Return a pattern that finds the group `value`, else its first group. Raises `InvalidExpression`."""
    compile_pattern(text, case_sensitive=True, engines=engines)
    capture = SandboxedCapture(text, _translated(text), engines)
    engines.compile("find", capture.translated, name=f"{text!r}")
    return capture


def _translated(text: str) -> str:
    parts, position = [], 0
    while position < len(text):
        part = PART.match(text, position)
        if part is None:
            raise InvalidExpression(f"{text!r}: the syntax from position {position} cannot be used to find a name")
        parts.append(_part(part))
        position = part.end()
    return "".join(parts)


def _part(part: re.Match[str]) -> str:
    if part["end"]:
        return r"\Z"
    if part["name"]:
        return f"(?P<{part['name']}>"
    return f"(?P={part['reference']})" if part["reference"] else part[0]


@dataclass(frozen=True, slots=True)
class SandboxedCapture:
    """A pattern that finds a name within a text, in the sandbox."""

    text: str
    translated: str
    engines: Engines

    def span(self, text: str) -> Span | None:
        """Return the span of the name in a text. Raises `FilterStopped`."""
        if not text.isascii() and any(found != BACKSLASH for found in CLASS.findall(self.translated)):
            # Rust and Python differ in the characters of these classes beyond ASCII.
            raise FilterStopped(f"{self.text!r} has a class of characters, and the text is not ASCII")
        answer = self.engines.answer("find", self.translated, json.dumps(text), name=f"pattern {self.text!r}")
        span = answer["span"]
        return (span[0], span[1]) if isinstance(span, list) and span[0] >= 0 else None
