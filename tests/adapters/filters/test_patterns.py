"""Regular expressions of users: mirrord's dialect, in the process and in the sandbox."""

import pytest

from signalbox.filters.captures import compile_capture
from signalbox.filters.engines import Engines
from signalbox.filters.patterns import EasyPattern, SandboxedPattern, compile_pattern
from signalbox.splitting.model.filters import FilterStopped, FilterUse, InvalidExpression


def pattern(text: str, engines: Engines, *, case_sensitive: bool = True) -> EasyPattern | SandboxedPattern:
    return compile_pattern(text, case_sensitive=case_sensitive, engines=engines)


@pytest.mark.parametrize(
    "text", ["^me$", "a|b", r"\d+", "(é)", "(?:é)*?", "", r"^Avi\.", ".*mirrord-session=a-b.*", "[^a-z]+", r"\w\s\W"]
)
def test_small_patterns_run_in_this_process(engines, text):
    assert isinstance(pattern(text, engines), EasyPattern)


@pytest.mark.parametrize(
    ("text", "matching", "other"),
    [
        pytest.param("^(?!test-)", "prod-1", "test-1", id="look-ahead"),
        pytest.param("(?<=eu-)west", "eu-west", "us-west", id="look-behind"),
        pytest.param(r"^(\w+)-\1$", "a-a", "a-b", id="back-reference"),
        pytest.param(r"(?<x>a)-\k<x>", "a-a", "a-b", id="named back-reference"),
        pytest.param(r"(?=a)a\\k<x>\z", r"a\k<x>", "a-a", id="escaped backslash"),
        pytest.param("^(?>a+)b", "aab", "aa", id="atomic group"),
        pytest.param("^a++b", "aab", "aa", id="possessive"),
        pytest.param("^a{2}$", "aa", "aaa", id="count"),
        pytest.param(r"\bann\b", "ann x", "annä", id="word boundary"),
        pytest.param("a" * 300, "a" * 300, "a" * 299, id="long"),
        pytest.param(r"\w\w\w\w\w\w", "müller", "ann", id="large classes"),
        pytest.param("(?x) a | b #)", "b", "x", id="comment at the end"),
        pytest.param("a|b(?<!x)", "a", "x", id="alternatives"),
    ],
)
def test_other_patterns_run_in_the_sandbox(engines, text, matching, other):
    compiled = pattern(text, engines)

    assert isinstance(compiled, SandboxedPattern)
    assert compiled.matches(matching)
    assert not compiled.matches(other)


@pytest.mark.parametrize("text", ["alice", "(?=alice)"])
def test_a_pattern_is_searched_with_optional_case(engines, text):
    assert pattern(text, engines).matches("session=alice;x")
    assert not pattern(text, engines).matches("session=ALICE;x")
    assert pattern(text, engines, case_sensitive=False).matches("session=ALICE;x")


@pytest.mark.parametrize(
    "text", ["(blue", "[", "*", ")", r"\p{Foo}", "(?=(", r"\1", "(?R)^b$", r"(?V0)(?=a)", r"\cA", "(a", "a" * 10_001]
)
def test_an_invalid_pattern_is_refused(engines, text):
    with pytest.raises(InvalidExpression, match=r"not a pattern of Rust's fancy-regex|at most 10000 are allowed"):
        pattern(text, engines)


@pytest.mark.parametrize("text", [r"(\w{1000}){1000}", r"(?=a)a{100000000}", "((a{9}){999}){999}"])
def test_a_pattern_that_costs_too_much_to_compile_is_refused(engines, text):
    with pytest.raises(InvalidExpression, match=r"not a pattern|to compile"):
        pattern(text, engines)


@pytest.mark.parametrize("text", ["^(a+)+$", "(a|aa)+$", "^(?=(a+)+$)"])
def test_catastrophic_backtracking_does_not_occur_without_back_references(engines, text):
    assert not pattern(text, engines).matches("a" * 10_000 + "!")


def test_a_pattern_that_backtracks_too_often_is_stopped(engines):
    with pytest.raises(FilterStopped, match=r"pattern .* backtracks too often"):
        pattern(r"(?<!x)(a|aa)+\1$", engines).matches("a" * 60 + "!")


def test_a_small_pattern_is_searched_in_the_sandbox_where_it_may_take_long(engines):
    """Its steps are states times characters; in the sandbox, its time is limited."""
    compiled = pattern(r"x\w\w\w\wz", engines)
    engines.use = FilterUse()

    assert not compiled.matches("ab" * 100)
    assert engines.use.elapsed_seconds == 0
    assert not compiled.matches("ab" * 5000)
    assert engines.use.elapsed_seconds > 0


@pytest.mark.parametrize("text", ["(a|b)*a(a|b)(a|b)b(a|b)", r"\d\d\d\d\d", "a+b+c+d+e+", "a*.a.b.c."])
def test_patterns_whose_automaton_may_grow_run_in_the_sandbox(engines, text):
    """The engine remembers up to 2 MB of states for each pattern."""
    assert isinstance(pattern(text, engines), SandboxedPattern)


def test_patterns_of_an_owner_beyond_its_memory_run_in_the_sandbox(engines):
    engines.use = FilterUse()

    patterns = [pattern(f"a{number}", engines) for number in range(1000)]

    assert 500 < sum(isinstance(one, EasyPattern) for one in patterns) < 1000
    assert all(one.matches("a999") for one in (patterns[0], patterns[99], patterns[-1])) is False
    assert patterns[-1].matches("a999")


def test_the_memory_of_deleted_patterns_is_free_again(engines):
    free = engines.free_bytes
    engines.use = FilterUse()

    kept = pattern("ann", engines)

    assert engines.free_bytes < free
    del kept
    assert engines.free_bytes == free


def test_half_a_surrogate_pair_counts_as_one_character(engines):
    assert pattern("a.b", engines).matches("a\ud800b")
    assert pattern("(?=a)a.b", engines).matches("a\ud800b")
    assert pattern("a\ud800?", engines).matches("a")


@pytest.mark.parametrize("start", ["", "(?=h)"])
def test_the_group_value_or_the_first_group_is_the_name(engines, start):
    def span(text: str) -> tuple[int, int] | None:
        return compile_capture(start + text, engines).span("https://é.example/orders?x")

    assert span("https://[^/]+/([a-z]+)") == (18, 24)
    assert span("(https)://[^/]+/(?P<value>[a-z]+)") == (18, 24)
    assert span("(?<scheme>h)ttps://[^/]+/(?<value>[a-z]+).x$") == (18, 24)
    assert span("https") == (0, 5)
    assert span("https(x)?") is None
    assert span("ftp") is None


def test_classes_of_characters_find_names_in_ascii_only(engines):
    """Beyond it, Rust and Python disagree about them."""
    capture = compile_capture(r"\\(\w+)\z", engines)

    assert capture.span("queue:\\orders") == (7, 13)
    with pytest.raises(FilterStopped, match="the text is not ASCII"):
        capture.span("é\\orders")
    assert compile_capture(r"é\\d(.)", engines).span("é\\dx") == (3, 4)


@pytest.mark.parametrize("text", [r"(?m)^a", r"[a[b]]", r"[a&&b]", r"(\pL+)", "(a", r"(a)(?(1)b|c)", r"\h+"])
def test_syntax_that_means_something_else_to_python_cannot_find_a_name(engines, text):
    with pytest.raises(InvalidExpression, match=r"not a pattern|cannot be used to find a name"):
        compile_capture(text, engines)


def test_a_pattern_that_python_refuses_cannot_find_a_name(engines):
    with pytest.raises(InvalidExpression, match="multiple repeat"):
        compile_capture("(x){2}{3}", engines)


def test_references_find_names(engines):
    assert compile_capture(r"(?<quote>['\"])(?<value>.*?)\k<quote>", engines).span("a='b'") == (3, 4)
