"""The parser of jq programs, in the grammar of jaq 2."""

import re
from collections.abc import Callable, Sequence

from signalbox.filters.jq_terms import ObjectEntry, PathStep, Term, VariablePattern, text_of
from signalbox.filters.jq_tokens import Tokens

CHARACTERS = re.compile(r"(?:[^\"\\]|\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4}))*")
ASSIGNMENTS = ("=", "|=", "+=", "-=", "*=", "/=", "%=", "//=")
# Operators by precedence, weakest first; those of the second level bind to the right.
LEVELS = (
    (",",),
    ASSIGNMENTS,
    ("//",),
    ("or",),
    ("and",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("+", "-"),
    ("*", "/"),
    ("%",),
)
PRECEDENCE = {operator: level for level, operators in enumerate(LEVELS) for operator in operators}
RESERVED = frozenset({"as", "then", "elif", "else", "end", "catch", "and", "or", "import", "include", "module"})


def parse_program(text: str) -> Term:
    """Return the tree of a program. Raises `InvalidExpression` with the position of the problem.

    A program that is nested too deeply raises `RecursionError`.
    """
    parser = _Parser(text)
    term = parser.term()
    if parser.position < len(text):
        raise parser.problem()
    return term


class _Parser(Tokens):
    """Parses a program."""

    def term(self, *, has_commas: bool = True) -> Term:
        """Parse a pipe of terms; the values of an object's entries have no commas."""
        left = self._operation(0 if has_commas else 1)
        if self.take("|"):
            return Term("pipe", terms=(left, self.term(has_commas=has_commas)))
        if self.take("as"):
            pattern = self._pattern()
            self.expect("|")
            return Term("bind", terms=(left, self.term(has_commas=has_commas)), pattern=pattern)
        return left

    def _operation(self, weakest: int) -> Term:
        """Parse operators that bind at least as strongly as `weakest`."""
        left = self._atom()
        while (level := PRECEDENCE.get(self.peek().text, -1)) >= weakest:
            operator = self.next().text
            left = Term("operation", operator, (left, self._operation(level + (operator not in ASSIGNMENTS))))
        return left

    def _atom(self) -> Term:
        """Parse a term without operators, which is also the operand of `try`."""
        term = self._head()
        while self.take("?"):
            term = Term("try", terms=(term,))
        steps = tuple(self._steps())
        return Term("path", terms=(term,), parts=steps) if steps else term

    def _head(self) -> Term:
        token = self.peek()
        if token.kind == "word" and token.text not in RESERVED:
            return self._word(self.next().text)
        if token.kind in ("number", "variable"):
            return Term(token.kind, self.next().text)
        if token.kind in ("text", "format"):
            return self._formatted()
        return self._dot() if token.text in (".", "..") or token.kind == "field" else self._block()

    def _formatted(self) -> Term:
        name = self.next().text if self.peek().kind == "format" else ""
        if name and self.peek().kind != "text":
            return Term("call", name, self._arguments())
        return Term("text", name, self._text().terms)

    def _block(self) -> Term:
        if self.take("-"):
            return Term("negation", terms=(self._atom(),))
        if self.take("("):
            inner = self.term()
            self.expect(")")
            return inner
        if self.take("["):
            return Term("array", terms=self._array())
        self.expect("{")
        return Term("object", parts=tuple(self._entries()))

    def _array(self) -> tuple[Term, ...]:
        if self.take("]"):
            return ()
        inner = self.term()
        self.expect("]")
        return (inner,)

    def _word(self, word: str) -> Term:
        keywords: dict[str, Callable[[], Term]] = {
            "def": self._definition,
            "if": self._condition,
            "try": self._try,
            "label": self._label,
            "break": lambda: Term("break", self.expect_kind("variable")),
            "reduce": lambda: self._fold("reduce"),
            "foreach": lambda: self._fold("foreach"),
        }
        return keywords[word]() if word in keywords else Term("call", word, self._arguments())

    def _try(self) -> Term:
        tried = self._atom()
        return Term("try", terms=(tried, self._atom()) if self.take("catch") else (tried,))

    def _label(self) -> Term:
        name = self.expect_kind("variable")
        self.expect("|")
        return Term("label", name, (self.term(),))

    def _fold(self, kind: str) -> Term:
        source = self._atom()
        self.expect("as")
        pattern = self._pattern()
        arguments = self._arguments()
        if not arguments:
            raise self.problem()
        return Term(kind, terms=(source, *arguments), pattern=pattern)

    def _definition(self) -> Term:
        name, parameters = self.expect_kind("word", "format"), ""
        if self.take("("):
            names = [self.expect_kind("word", "variable")]
            while self.take(";"):
                names.append(self.expect_kind("word", "variable"))
            self.expect(")")
            parameters = f"({'; '.join(names)})"
        self.expect(":")
        body = self.term()
        self.expect(";")
        return Term("definition", name + parameters, (body, self.term()))

    def _condition(self) -> Term:
        condition = self.term()
        self.expect("then")
        then = self.term()
        if self.take("elif"):
            return Term("if", terms=(condition, then, self._condition()))
        other = (self.term(),) if self.take("else") else ()
        self.expect("end")
        return Term("if", terms=(condition, then, *other))

    def _arguments(self) -> tuple[Term, ...]:
        if not self.take("("):
            return ()
        found = [self.term()]
        while self.take(";"):
            found.append(self.term())
        self.expect(")")
        return tuple(found)

    def _dot(self) -> Term:
        token = self.next()
        if token.text == "..":
            return Term("all")
        if token.kind == "field":
            return Term("path", terms=(Term("input"),), parts=(self._index(text_of(token.text[1:])),))
        if self.peek().kind == "text":
            return Term("path", terms=(Term("input"),), parts=(self._index(self._text()),))
        return Term("input")

    def _steps(self) -> "Sequence[PathStep]":
        steps = []
        while True:
            token = self.peek()
            if token.kind == "field":
                steps.append(self._index(text_of(self.next().text[1:])))
            elif token.text == "." and self.peek_after().kind == "text":
                self.next()
                steps.append(self._index(self._text()))
            elif self.take("["):
                steps.append(self._bracket())
            else:
                return steps

    def _bracket(self) -> PathStep:
        if self.take("]"):
            return PathStep((), self._is_optional())
        start = None if self.peek().text == ":" else self.term()
        if not self.take(":"):
            self.expect("]")
            return self._index(start)
        end = None if self.peek().text == "]" else self.term()
        self.expect("]")
        return PathStep((start, end), self._is_optional())

    def _index(self, term: Term | None) -> PathStep:
        return PathStep((term,), self._is_optional())

    def _is_optional(self) -> bool:
        found = False
        while self.take("?"):
            found = True
        return found

    def _entries(self) -> "Sequence[ObjectEntry]":
        entries: list[ObjectEntry] = []
        while not self.take("}"):
            if entries:
                self.expect(",")
                if self.take("}"):
                    break
            entries.append(self._entry())
        return entries

    def _entry(self) -> ObjectEntry:
        token = self.peek()
        if self.take("("):
            key = self.term()
            self.expect(")")
            self.expect(":")
            return ObjectEntry(key, self.term(has_commas=False))
        key = Term("variable", self.next().text) if token.kind == "variable" else self._key()
        return ObjectEntry(key, self.term(has_commas=False) if self.take(":") else None)

    def _key(self) -> Term:
        if self.peek().kind == "word":
            return text_of(self.next().text)
        name = self.next().text if self.peek().kind == "format" else ""
        return Term("text", name, self._text().terms)

    def _pattern(self) -> VariablePattern:
        if self.peek().kind == "variable":
            return VariablePattern(self.next().text)
        if self.take("["):
            found = [self._pattern()]
            while self.take(","):
                found.append(self._pattern())
            self.expect("]")
            return VariablePattern(inner=tuple((Term("number", str(n)), one) for n, one in enumerate(found)))
        self.expect("{")
        inner = [self._pattern_entry()]
        while self.take(","):
            inner.append(self._pattern_entry())
        self.expect("}")
        return VariablePattern(inner=tuple(inner))

    def _pattern_entry(self) -> tuple[Term, VariablePattern]:
        token = self.peek()
        if token.kind == "variable":
            return text_of(token.text[1:]), VariablePattern(self.next().text)
        if self.take("("):
            key = self.term()
            self.expect(")")
        else:
            key = self._key()
        self.expect(":")
        return key, self._pattern()

    def _text(self) -> Term:
        """Parse a text: its terms are characters as they are written, and programs."""
        self.expect('"')
        self.position -= self.space  # within a text, space counts
        parts: list[Term] = []
        while True:
            found = CHARACTERS.match(self.text, self.position)
            if found is None:
                raise self.problem()
            parts.append(Term("characters", found[0]))
            self.position = found.end()
            if self.text.startswith('"', self.position):
                self.position += 1
                self.skip_space()
                return Term("text", terms=tuple(parts))
            if not self.text.startswith("\\(", self.position):
                raise self.problem()
            self.position += 2
            self.skip_space()
            parts.append(self.term())
            if not self.text.startswith(")", self.position):
                raise self.problem()
            self.position += 1
