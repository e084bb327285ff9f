"""The dialect of mirrord's jq engine, jaq 2: its programs as programs of jaq 3 with the same verdicts.

In jaq 2 a path through null is an error, which jaq 3 takes for null; numbers beyond 64 bits are floating point;
`fromjson` takes exactly one value. mirrord skips errors among the outputs of a program, and the bindings of jaq 3 end
with the first one: so errors are skipped within the program, where its outputs come from.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count

from signalbox.filters.jq_parser import ASSIGNMENTS, parse_program
from signalbox.filters.jq_terms import ObjectEntry, PathStep, Term, VariablePattern
from signalbox.splitting.model.filters import InvalidExpression

# The functions of jaq-std 2.1.2 and jaq-json 1.1.2, by number of arguments, but for those that end the process.
FUNCTIONS = {
    0: """
    @base64 @base64d @csv @html @json @sh @text @tsv @uri @urid abs acos acosh add all any arrays ascii_downcase
    ascii_upcase asin asinh atan atanh booleans cbrt ceil cos cosh debug empty env erf erfc error exp exp10 exp2 explode
    expm1 fabs false finites first flatten floor frexp from_entries fromdate fromdateiso8601 fromjson gamma gmtime
    ilogb implode infinite input inputs isarray isboolean isfinite isinfinite isnan isnormal isnumber isobject
    isstring iterables j0 j1 keys keys_unsorted last length lgamma localtime log log10 log1p log2 logb ltrim max min
    mktime modf nan nearbyint normals not now null nulls numbers objects paths pow10 recurse reverse rint round rtrim
    scalars significand sin sinh sort sqrt stderr strings tan tanh tgamma to_entries todate todateiso8601 tojson
    tonumber tostring transpose trim true trunc type unique utf8bytelength values y0 y1""",
    1: """
    add all any capture contains debug del endswith error first flatten getpath group_by has in index
    indices inside isempty join last ltrimstr map map_values match max_by min_by nth paths range recurse repeat rindex
    rtrimstr scan select sort_by split splits startswith strflocaltime strftime strptime test unique_by walk
    with_entries""",
    2: """
    all any atan2 capture copysign drem fdim fmax fmin fmod gsub hypot jn ldexp limit match nextafter nexttoward nth pow
    range recurse remainder scalb scalbln scan skip split splits sub test until while yn""",
    3: "fma gsub range sub",
}
KNOWN = {(name, number) for number, names in FUNCTIONS.items() for name in names.split()}
OWN = "__signalbox_"
LARGEST = 2**63 - 1
# What is written here has no limits of time and memory, and a part that is written twice at each level doubles with it.
MAXIMUM_WRITTEN = 200_000
# The terms that are written as they are, with their inner terms in order.
FORMS = {
    "input": ".",
    "all": "..",
    "variable": "{text}",
    "break": "break {text}",
    "pipe": "({0} | {1})",
    "operation": "({0} {text} {1})",
    "negation": "(-({0}))",
    "array": "[{0}]",
    "label": "(label {text} | {0})",
    "definition": "(def {text}: {0}; {1})",
    "if of 2": "(if {0} then {1} end)",
    "if of 3": "(if {0} then {1} else {2} end)",
    "try of 1": "(try ({0}))",
    "try of 2": "(try ({0}) catch ({1}))",
}
# Those that fail only where their inner terms do.
WITHOUT_ERRORS = ("input", "all", "variable", "break", "pipe", "if", "label")
Write = Callable[[Term], str]
PRELUDE = """
def __signalbox_null: "cannot use null as iterable (array or object)";
def __signalbox_unfit($k): isobject and ($k | isstring | not) or isarray and ($k | isnumber and floor == . | not);
def __signalbox_at($k):
    if . == null then error(__signalbox_null)
    elif __signalbox_unfit($k) then error("cannot index with \\($k)")
    else .[$k] end;
def __signalbox_try($k): if . == null or __signalbox_unfit($k) then empty else .[$k]? end;
def __signalbox_key: if isstring then . else error("cannot use \\(.) as string") end;
def __signalbox_numbers:
    if isnumber then if . > 9223372036854775807 or . < -9223372036854775808 then . + 0.0 end
    elif isarray or isobject then map_values(__signalbox_numbers) end;
def __signalbox_unquoted($pattern): test("^(?:[^\\"]|\\"(?:[^\\"\\\\\\\\]|\\\\\\\\.)*\\")*?(?:" + $pattern + ")");
def __signalbox_lenient:
    "[Nn]a|I|#|[a-z]\\"|[^\\"\\\\s]\\\\s*:|(?:^|[^\\"eE0-9])[+]|(?:^|[^-+.\\"eE0-9])-?0[0-9]";
def __signalbox_fromjson: fromjson;
def fromjson:
    . as $text
    | if isstring and __signalbox_unquoted(__signalbox_lenient) then []
      else [__signalbox_fromjson] end
    | if length != 1 then error("cannot parse \\($text) as JSON")
      elif $text | test("[0-9]{19}") and __signalbox_unquoted("[0-9]{19}") then .[0] | __signalbox_numbers
      else .[0] end;
def tonumber: if isnumber then . else fromjson end;
def first: __signalbox_at(0);
def last: __signalbox_at(-1);
def nth($n): __signalbox_at($n);
def __signalbox_has($k): has($k);
def has($k):
    if . == null then error(__signalbox_null)
    elif __signalbox_unfit($k) or (isarray and $k < 0) then error("cannot index with \\($k)")
    else __signalbox_has($k) end;
def in(xs): . as $x | xs | has($x);
def getpath($path): reduce $path[] as $key (.; __signalbox_at($key));
def from_entries:
    reduce (.[] | {(__signalbox_at("key") | __signalbox_key): __signalbox_at("value")}) as $one ({}; . + $one);
def with_entries(f): to_entries | map(f) | from_entries;
"""


def decision_of(text: str) -> str:
    """Return the program of jq 3 for the first output that is a boolean. Raises `InvalidExpression`."""
    return f"{PRELUDE}first({_written(text, is_skipping=True)} | if isboolean then . else empty end)"


def texts_of(text: str) -> str:
    """Return the program of jq 3 for the outputs that are texts. Raises `InvalidExpression`."""
    return f"{PRELUDE}{_written(text, is_skipping=False)} | strings"


def _written(text: str, *, is_skipping: bool) -> str:
    if OWN in text:
        raise InvalidExpression(f"{OWN!r} is reserved")
    try:
        term = parse_program(text)
        writer = _Writer(set(_defined(term)))
        return writer.skipping(term) if is_skipping else writer.plain(term)
    except RecursionError as error:
        raise InvalidExpression("nested too deeply") from error


def _defined(term: Term) -> Iterator[str]:
    """Yield the names of all functions and parameters that a program defines."""
    if term.kind == "definition":
        name, _, parameters = term.text.partition("(")
        yield name
        yield from (one.strip() for one in parameters.rstrip(")").split(";"))
    inner: list[Term | None] = [*term.terms]
    for part in term.parts:
        inner += part.terms if isinstance(part, PathStep) else (part.key, part.value)
    for one in inner:
        if one is not None:
            yield from _defined(one)


class _Writer:
    """Writes terms: `plain` ones end with their first error, `skipping` ones continue with their next output."""

    def __init__(self, defined: set[str]) -> None:
        self.defined, self.numbers = defined, count()
        self.special: dict[str, Callable[[Term], str]] = {
            "number": self._number,
            "text": self._text,
            "path": partial(self._path, write=self.plain),
            "object": partial(self._object, write=self.plain),
            "bind": partial(self._binding, write=self.plain),
            "reduce": self._fold,
            "foreach": self._fold,
            "call": self._call,
        }
        self.special_skipping: dict[str, Callable[[Term], str]] = {
            "number": self._number,
            "path": partial(self._path, write=self.skipping),
            "object": lambda term: f"({self._object(term, write=self.skipping)})?",
            "bind": partial(self._binding, write=self.skipping),
            "definition": self._definition,
            "negation": self._negation,
            "operation": self._operation,
        }

    def plain(self, term: Term) -> str:
        special = self.special.get(term.kind)
        return _bounded(special(term) if special else self._formatted(term, self.plain))

    def skipping(self, term: Term) -> str:
        return _bounded(self._skipping(term))

    def _skipping(self, term: Term) -> str:
        if special := self.special_skipping.get(term.kind):
            return special(term)
        if term.kind == "call" and len(term.terms) == 1 and term.text in {"error", "split"} - self.defined:
            return self._continued(term)
        if term.kind in WITHOUT_ERRORS:
            return self._formatted(term, self.skipping)
        return f"({self.plain(term)})?"

    def _continued(self, term: Term) -> str:
        """Return `error` or `split` of one argument, which continue with their input after their error in jaq 2."""
        if term.text == "error":
            return "."
        separator = self._new()
        words = f"if isstring and ({separator} | isstring) then split({separator}) else . end"
        return f"({self.skipping(term.terms[0])} as {separator} | {words})"

    def _formatted(self, term: Term, write: Write) -> str:
        form = FORMS.get(term.kind) or FORMS[f"{term.kind} of {len(term.terms)}"]
        return form.format(*map(write, term.terms), "", text=term.text)

    def _definition(self, term: Term) -> str:
        return f"(def {term.text}: {self.plain(term.terms[0])}; {self.skipping(term.terms[1])})"

    def _negation(self, term: Term) -> str:
        return f"({self.skipping(term.terms[0])} as {(name := self._new())} | (-{name})?)"

    def _operation(self, term: Term) -> str:
        if term.text in (*ASSIGNMENTS, "//"):
            return f"({self._formatted(term, self.plain)})?"
        if term.text in (",", "and", "or"):
            return self._formatted(term, self.skipping)
        (left, right), one, other = map(self.skipping, term.terms), self._new(), self._new()
        return f"({left} as {one} | {right} as {other} | ({one} {term.text} {other})?)"

    def _number(self, term: Term) -> str:
        return f"{term.text}.0" if term.text.isdigit() and int(term.text) > LARGEST else term.text

    def _text(self, term: Term) -> str:
        parts = (one.text if one.kind == "characters" else f"\\({self.plain(one)})" for one in term.terms)
        return f'{term.text}"{"".join(parts)}"'

    def _call(self, term: Term) -> str:
        if term.text not in self.defined and (term.text, len(term.terms)) not in KNOWN:
            raise InvalidExpression(f"{term.text}/{len(term.terms)} is not defined")
        arguments = "; ".join(map(self.plain, term.terms))
        return f"{term.text}({arguments})" if arguments else term.text

    def _object(self, term: Term, *, write: Write) -> str:
        bound: list[str] = []
        entries = [self._entry(one, bound, write) for one in term.parts if isinstance(one, ObjectEntry)]
        return f"({''.join(bound)}{{{', '.join(entries)}}})"

    def _entry(self, entry: ObjectEntry, bound: list[str], write: Write) -> str:
        key, value = entry.key, entry.value
        if value is not None:
            return f"({self.plain(key)} | {OWN}key): ({write(value)})"
        if key.kind == "variable":
            return f'"{key.text[1:]}": {key.text}'
        name = self._bound(key, bound, write)
        return f"({name}): {OWN}at({name})"

    def _path(self, term: Term, *, write: Write) -> str:
        bound: list[str] = []
        parts = [write(term.terms[0])]
        for step in term.parts:
            if isinstance(step, PathStep):
                names = [self._bound(one, bound, write) if one else None for one in step.terms]
                parts.append(_step(names, is_optional=step.is_optional or write == self.skipping))
        return f"({''.join(bound)}{' | '.join(parts)})"

    def _bound(self, term: Term, bound: list[str], write: Write) -> str:
        """Return an index; a computed index is bound to a variable, since its input is the input of the whole path."""
        if term.kind == "number" or (term.kind == "text" and all(one.kind == "characters" for one in term.terms)):
            return self.plain(term)
        name = self._new()
        bound.append(f"{write(term)} as {name} | ")
        return name

    def _binding(self, term: Term, *, write: Write) -> str:
        source, body = map(write, term.terms)
        variable, opened = self._opened(term.pattern, "?" if write == self.skipping else "")
        return f"({source} as {variable} | {opened}{body})"

    def _fold(self, term: Term) -> str:
        source, start, *rest = map(self.plain, term.terms)
        variable, opened = self._opened(term.pattern, "")
        return f"({term.kind} {source} as {variable} ({'; '.join([start, *(opened + one for one in rest)])}))"

    def _opened(self, pattern: VariablePattern | None, end: str) -> tuple[str, str]:
        """Return a pattern's variable, and the bindings of the variables within, each with `end`."""
        if pattern is None or pattern.variable:
            return pattern.variable if pattern else "", ""
        whole, opened = self._new(), ""
        for key, inner in pattern.inner:
            variable, more = self._opened(inner, end)
            step = f"{self.plain(key)} as {(name := self._new())} | {whole} | {OWN}at({name})"
            opened += f"({step}){end} as {variable} | {more}"
        return whole, opened

    def _new(self) -> str:
        return f"${OWN}{next(self.numbers)}"


def _bounded(text: str) -> str:
    if len(text) > MAXIMUM_WRITTEN:
        raise InvalidExpression(f"has more than {MAXIMUM_WRITTEN} characters in the engine's dialect: write less")
    return text


def _step(names: Sequence[str | None], *, is_optional: bool) -> str:
    if len(names) == 1:
        return f"{OWN}{'try' if is_optional else 'at'}({names[0]})"
    return f".[{':'.join(name or '' for name in names)}]{'?' if is_optional else ''}"
