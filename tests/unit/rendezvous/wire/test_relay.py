"""Relay patterns: the cases of upstream's matcher, and the property of supersets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.rendezvous.wire.relay import RelayPattern, is_relay_allowed

SNOWFLAKE = "snowflake.torproject.net$"
patterns = st.builds(
    lambda start, name, end: start + name + end,
    st.sampled_from(["", "^"]),
    st.text("ab.", max_size=4),
    st.sampled_from(["", "$"]),
)


@pytest.mark.parametrize(
    ("pattern", "hostname", "accepted"),
    [
        ("", "", True),
        ("", "anything", True),
        ("^snowflake.torproject.net$", "snowflake.torproject.net", True),
        ("^snowflake.torproject.net$", "01-snowflake.torproject.net", False),
        ("^snowflake.torproject.net$", "faketorproject.net", False),
        (SNOWFLAKE, "snowflake.torproject.net", True),
        (SNOWFLAKE, "imaginary-01-snowflake.torproject.net", True),
        (SNOWFLAKE, "imaginary-snowflake.faketorproject.net", False),
        ("net$$", "net", False),
        ("^^net", "^net", True),
        ("$", "anything", True),
        ("^", "", True),
        ("^", "a", False),
    ],
)
def test_a_pattern_is_a_suffix_or_a_whole_name(pattern, hostname, accepted):
    assert RelayPattern.parse(pattern).accepts(hostname) is accepted


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
    assert is_relay_allowed(proxy, RelayPattern.parse(SNOWFLAKE)) is accepted


@pytest.mark.parametrize(
    ("proxy", "accepted"),
    [("^a.net$", True), ("a.net$", True), ("net", True), ("^net$", False)],
)
def test_an_exact_allowed_pattern_requires_itself_or_a_suffix_of_it(proxy, accepted):
    assert is_relay_allowed(proxy, RelayPattern.parse("^a.net$")) is accepted


@pytest.mark.parametrize(("proxy", "accepted"), [("", True), ("$", True), (SNOWFLAKE, False)])
def test_an_empty_allowed_pattern_requires_proxies_without_restriction(proxy, accepted):
    assert is_relay_allowed(proxy, RelayPattern.parse("")) is accepted


@given(patterns, patterns, st.text("ab.", max_size=6))
def test_a_superset_accepts_every_name_that_the_other_accepts(wide, narrow, hostname):
    wide, narrow = RelayPattern.parse(wide), RelayPattern.parse(narrow)

    if wide.is_superset_of(narrow) and narrow.accepts(hostname):
        assert wide.accepts(hostname)
