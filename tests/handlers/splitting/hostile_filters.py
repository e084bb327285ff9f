"""Hostile patterns and programs, made from a seed: each is random and repeatable."""

import random
from collections.abc import Iterator
from typing import Any

ATOMS = [*"aab.", "[a-z]", "[^b]", r"\w", r"\d", r"\s", r"\b", "é", r"\p{L}", r"\X", r"\R", r"\K", r"\G", "^", "$", ""]
REPEATS = [
    "*",
    "+",
    "?",
    "*+",
    "++",
    "*?",
    "{2,}",
    "{,3}",
    "{1000}",
    "{100000000}",
    "{999999999999}",
    "{2}{3}{4}",
    "**",
]
GROUPS = ["(%s)", "(?:%s)", "(?>%s)", "(?=%s)", "(?!%s)", "(?<=%s)", "(?<!%s)", "(?i:%s)", "(?<n>%s)", "(?P<value>%s)"]
# The syntax of Python's `regex`, of PCRE and of Oniguruma, which other engines may not know.
FOREIGN = [
    "(?R)", "(?0)", "(?1)", "(?&n)", r"\g<1>", "(?V0)", "(?V1)", "(?r)", "(?b)", "(?e)", "(?p)", "(?w)", "(?f)",
    "(?:a){e<=3}", "(?:aaaa){i<=2,d<=2,e<=5}", r"\L<names>", "(?|(a)|(b))", "(?(1)a|b)", "(?(?=a)a|b)",
    "(?(DEFINE)(?<x>a(?&x)?))", "(*PRUNE)", "(*SKIP)", "(*FAIL)", "(?#c)", r"\N{BULLET}", r"\m", r"\M", r"\h", r"\A",
    r"\Z", r"\z", "[[a-z]--[b]]", "[a-z&&[^b]]", "[a||b]", "[[:alpha:]]", r"\p{Script=Greek}", r"\1", r"\k<n>", r"\2",
    r"(a|\1)+", "(?x) a #", "(?s)(?m)", "(?", "(", "[", "\\", "{", "\ud800", "\0", "(?P=value)", "(?P>n)", "(?|",
]  # fmt: skip
KNOWN = [
    "(?R)^b$", "(?V0)(?=a)", "(?=a)a{100000000}", "(?<!x)(a|aa)+$", "(?<!x)(a|aa)+b$", "^(?=.*)(a|aa|b\\1)+$",
    "(a*)*(?=b)", "(?=(a+)+$)(?!b)\\1*c", "((a{1000}){1000}){1000}", "(" * 5000, "(?:" * 400 + ")*" * 400,
    "(?=" * 70 + ")" * 70, "|" * 9000, "[" * 9000, r"\w" * 5000, r"(?i)\w{200}\w{200}", "(a?){64}a{64}",
    "(.*)(.*)(.*)(.*)(.*)\\5\\4\\3\\2\\1x", "(x+x+)+y(?<=y)", "a" * 10_001, "(?<=" + "a|" * 3000 + "b)",
]  # fmt: skip
PROGRAMS = [
    "def f: f; f", "def f: f + f; f", "def f: [f]; f", "def f: 1, f; [f]", "last(range(1e12))", "[range(1e9)]",
    "[limit(1e9; repeat(1))] | length < 0", '"x" * 1e9 | length > 0', '"x" * 1e10',
    "reduce range(1e9) as $i (0; .+$i)", "[recurse([.])] | length", "last(recurse(.+1)) > 0",
    "def f(x): f(x | x); f(.)", "until(false; .)", "input", "inputs", "while(true; .) | true", "repeat(.)", "halt",
    '"x" | halt_error', "env", "$ENV", "debug", "stderr", "$__prog_args", 'reduce range(40) as $i ("x"; . + .)',
    "reduce range(64) as $i ([1]; [., .])", "[range(3000) | [range(3000)]]",
    "reduce range(100000) as $i (1; [.]) | tojson", "reduce range(20000) as $i (.; {a: .}) | tostring",
    "error(error)", '.Body | test("(a+)+$")', '.Body | [match("(a|aa)*$"; "g")] | length',
    '"a" * 100000 | test("(a*)*(b*)*$")', '.Body | test("(?=a)a{100000000}")', '.Body | gsub("";"a";"g")',
    '[.Body | scan("a*?")] | length', '"\\(1e1000)"', "infinite | floor", "nan < nan", "[.[]?] | combinations",
    "[range(20)] | [combinations(20)]", "@base64d", "ltrimstr(1)", "getpath([range(100000)])",
    "setpath([range(100000)]; 1)", ". as [$a, $b] | $c", "label $f | break $f", "limit(-1; 1)", 'import "a" as a; 1',
    'include "/etc/passwd"; 1', "$__loc__", "input_filename", "get_search_list", "splits(1)", "tojson",
    "1e1000000 | tostring", "[1e308 * 10] | tojson", "99999999999999999999 * 99999999999999999999", "(" * 5000,
    "[" * 9000, "." * 9000, "1+" * 4999 + "1", "try error catch " * 600 + ".", "-" * 9000 + "1", '"' + "\\(" * 3000,
    "#" * 9000, "\ud800", ".a" * 4000, "." + "[0]" * 3000, "def a: 1; " * 900 + "a",
    "if true then " * 700 + "1" + " end" * 700, "$x", "\0", "implode", "[1114112] | implode",
    "[range(1e7)] | sort | length", '"x" | ascii', "mktime", "1e18 | todate", "walk(.)", "tostream",
    "[., .] | transpose", "@sh", "@uri", "splits(\"a*\")", "ascii_downcase", "[range(1e6)] | group_by(.)",
]  # fmt: skip


def hostile_filters(seed: int) -> Iterator[dict[str, Any]]:
    """Yield entries of `split_queues` without end, each with a hostile pattern or program."""
    chance = random.Random(seed)  # noqa: S311 - repeatable is what it must be
    while True:
        kind = chance.random()
        if kind < 0.3:
            yield {"jq_filter": _program(chance)}
        elif kind < 0.8:
            yield {"message_filter": {"who": _any_pattern(chance)}}
        else:
            parts = [{"metadata": _any_pattern(chance)} for _ in range(chance.choice([1, 3, 30]))]
            yield {"filter": {chance.choice(["any_of", "all_of"]): parts}}


def _any_pattern(chance: random.Random) -> str:
    if chance.random() < 0.15:
        return chance.choice(KNOWN)
    return (
        chance.choice(["", "", "^", "(?=a)", "(?i)"]) + _pattern(chance, depth=0) + chance.choice(["", "$", "!$", "b"])
    )


def _pattern(chance: random.Random, *, depth: int) -> str:
    if depth > 5 or chance.random() < 0.15:
        return chance.choice(FOREIGN if chance.random() < 0.2 else ATOMS)
    kind = chance.random()
    if kind < 0.35:
        return chance.choice(GROUPS) % _pattern(chance, depth=depth + 1) + chance.choice(REPEATS)
    if kind < 0.55:
        return _pattern(chance, depth=depth + 1) + chance.choice(REPEATS)
    parts = (_pattern(chance, depth=depth + 1) for _ in range(chance.randint(2, 4)))
    return f"({'|'.join(parts)})*" if kind < 0.75 else "".join(parts)


def _program(chance: random.Random) -> str:
    first, second = chance.choice(PROGRAMS), chance.choice(PROGRAMS)
    return chance.choice(
        [first, first, f"({first}) | {second}", f"[{first}, {second}]", f"try ({first}) catch {second}"]
    )
