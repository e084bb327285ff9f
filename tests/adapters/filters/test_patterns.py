"""Regular expressions of users: in RE2, in the engine with a time limit, and refused ones."""

import time
from datetime import timedelta

import pytest

from signalbox.filters.patterns import BoundedPattern, LinearPattern, compile_pattern
from signalbox.splitting.forwarding.filters import FilterTooSlow, InvalidExpression


def pattern(text: str, *, case_sensitive: bool = True, seconds: float = 5) -> LinearPattern | BoundedPattern:
    return compile_pattern(text, case_sensitive=case_sensitive, time_limit=timedelta(seconds=seconds))


@pytest.mark.parametrize("text", ["^me$", "a|b", r"\d+", "(?i)x", "(?P<value>é)", "(?<value>é)", ""])
def test_supported_patterns_run_in_re2(text):
    assert isinstance(pattern(text), LinearPattern)


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
    ],
)
def test_other_patterns_run_with_a_time_limit(text, matching, other):
    compiled = pattern(text)

    assert isinstance(compiled, BoundedPattern)
    assert compiled.matches(matching)
    assert not compiled.matches(other)


@pytest.mark.parametrize("text", ["alice", "(?=alice)"])
def test_a_pattern_is_searched_with_optional_case(text):
    assert pattern(text).matches("session=alice;x")
    assert not pattern(text).matches("session=ALICE;x")
    assert pattern(text, case_sensitive=False).matches("session=ALICE;x")


@pytest.mark.parametrize("text", ["(blue", "[", "*", "a**", r"\p{Foo}", "(?=(", r"\1"])
def test_an_invalid_pattern_is_refused_and_quoted(text):
    with pytest.raises(InvalidExpression) as refusal:
        pattern(text)

    assert repr(text) in str(refusal.value)


@pytest.mark.parametrize("text", ["(a{1000}){1000}", "a{100000}", "x" * 10_001], ids=["nested", "large", "long"])
def test_a_pattern_that_needs_too_much_memory_is_refused(text):
    with pytest.raises(InvalidExpression):
        pattern(text)


def test_catastrophic_backtracking_does_not_occur_in_re2():
    assert not pattern("^(a+)+$").matches("a" * 10_000 + "!")


def test_a_pattern_that_backtracks_for_too_long_is_aborted():
    compiled = pattern(r"^(?=.*)(a|aa|b\1)+$", seconds=0.05)
    started = time.monotonic()

    with pytest.raises(FilterTooSlow, match=r"took longer than 0\.05 s"):
        compiled.matches("a" * 200 + "!")
    with pytest.raises(FilterTooSlow):
        compiled.span("a" * 200 + "!")

    assert time.monotonic() - started < 5


def test_half_a_surrogate_pair_counts_as_one_character():
    assert pattern("a.b").matches("a\ud800b")
    assert pattern("(?=a)a.b").matches("a\ud800b")


@pytest.mark.parametrize("start", ["", "(?=h)"])
def test_the_group_value_or_the_first_group_is_the_name(start):
    text = "https://é.example/orders?x"

    assert pattern(start + r"https://[^/]+/(\w+)").span(text) == (18, 24)
    assert pattern(start + r"(https)://[^/]+/(?P<value>\w+)").span(text) == (18, 24)
    assert pattern(start + "https").span(text) == (0, 5)
    assert pattern(start + "https(x)?").span(text) is None
    assert pattern(start + "ftp").span(text) is None
