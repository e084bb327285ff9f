"""The tokens of jq programs."""

import re
from dataclasses import dataclass

from signalbox.splitting.model.filters import InvalidExpression

TOKEN = re.compile(
    r"(?P<space>\s+|\#(?:\\[^\r\n]|\\\r?\n|[^\\\n])*)|(?P<number>\d++(?:\.\d+|(?!\.))(?:[eE][+-]?\d+)?)|(?P<text>\")"
    r"|(?P<word>[A-Za-z_]\w*)|(?P<variable>\$[A-Za-z_]\w*)|(?P<format>@[A-Za-z_]\w*)|(?P<field>\.[A-Za-z_]\w*)"
    r"|(?P<symbol>\.\.|[|+*/%=-]=|//=?|[!<>]=|[-|+*/%=<>.,;:?()\[\]{}])",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token: the name of its group in `TOKEN`, and its text; empty at the end and where there is none."""

    kind: str = ""
    text: str = ""


class Tokens:
    """Reads the tokens of a program; space and comments between them are skipped."""

    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0
        self.skip_space()

    def problem(self) -> InvalidExpression:
        """Return the error for the current position."""
        return InvalidExpression(f"syntax error at position {self.position}")

    def peek(self) -> Token:
        """Return the next token without reading it."""
        found = TOKEN.match(self.text, self.position)
        return Token(str(found.lastgroup), found[0]) if found else Token()

    def peek_after(self) -> Token:
        """Return the token after the next one."""
        position = self.position
        self.next()
        token = self.peek()
        self.position = position
        return token

    def next(self) -> Token:
        """Read the next token."""
        token = self.peek()
        if not token.kind:
            raise self.problem()
        self.position += len(token.text)
        self.skip_space()
        return token

    def skip_space(self) -> None:
        """Skip space and comments."""
        start = self.position
        while (found := TOKEN.match(self.text, self.position)) and found["space"]:
            self.position = found.end()
        self.space = self.position - start

    def take(self, text: str) -> bool:
        """Read the next token if it is `text`; return whether it is."""
        is_next = self.peek().text == text
        if is_next:
            self.next()
        return is_next

    def expect(self, text: str) -> None:
        """Read the next token, which must be `text`."""
        if not self.take(text):
            raise self.problem()

    def expect_kind(self, *kinds: str) -> str:
        """Read the next token, which must be of one of the kinds; return its text."""
        if self.peek().kind not in kinds:
            raise self.problem()
        return self.next().text
