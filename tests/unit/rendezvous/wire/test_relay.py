"""Relay patterns: which proxies accept every relay that a stage allows."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signalbox.rendezvous.wire.proxy import is_relay_allowed

SNOWFLAKE = "snowflake.torproject.net$"
patterns = st.builds(
    lambda start, name, end: start + name + end,
    st.sampled_from(["", "^"]),
    st.text("ab.", max_size=4),
    st.sampled_from(["", "$"]),
)


@pytest.mark.parametrize(
    ("proxy", "accepted"),
    [
        (SNOWFLAKE, True),
        ("snowflake.torproject.net", True),
        ("torproject.net$", True),
        ("", True),
        ("02.snowflake.torproject.net$", False),
        ("^snowflake.torproject.net$", False),
        ("evil.example$", False),
        (None, False),
    ],
)
def test_a_proxy_is_allowed_if_its_pattern_accepts_every_allowed_relay(proxy, accepted):
    assert is_relay_allowed(proxy, SNOWFLAKE) is accepted


@pytest.mark.parametrize(
    ("proxy", "accepted"),
    [("^a.net$", True), ("a.net$", True), ("net", True), ("^net$", False)],
)
def test_an_exact_allowed_pattern_requires_itself_or_a_suffix_of_it(proxy, accepted):
    assert is_relay_allowed(proxy, "^a.net$") is accepted


@pytest.mark.parametrize(("proxy", "accepted"), [("", True), ("$", True), (SNOWFLAKE, False)])
def test_an_empty_allowed_pattern_requires_proxies_without_restriction(proxy, accepted):
    assert is_relay_allowed(proxy, "") is accepted


def accepts(pattern, hostname):
    """Match as upstream's matcher (common/namematcher)."""
    rule = pattern.removesuffix("$")
    return hostname == rule[1:] if rule[:1] == "^" else hostname.endswith(rule)


@given(patterns, patterns, st.text("ab.", max_size=6))
@example("net$$", "net", "net")
@example("^^net", "^^net$", "^net")
def test_an_allowed_proxy_accepts_every_name_that_the_stage_allows(proxy, allowed, hostname):
    if is_relay_allowed(proxy, allowed) and accepts(allowed, hostname):
        assert accepts(proxy, hostname)
