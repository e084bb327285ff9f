"""The small pages; the expected texts were recorded from upstream v2.14.1."""

from hypothesis import given
from hypothesis import strategies as st

from signalbox.rendezvous.model.pace import ProxyKind
from signalbox.rendezvous.reporting.pages import (
    CROSS_ORIGIN,
    NOT_FOUND,
    NOT_FOUND_HEADERS,
    PROMETHEUS_TEXT,
    ROBOTS,
    TEXT,
    debug_page,
)
from signalbox.rendezvous.wire.nat import Nat


def test_debug_without_proxies():
    assert debug_page({}) == (
        "current snowflakes available: 0\n\tunknown proxies: 0\nNAT Types available:\n"
        "\trestricted: 0\n\tunrestricted: 0\n\tunknown: 0"
    )


def test_debug_lists_present_types_and_always_unknown():
    waiting = {
        ProxyKind(Nat.UNRESTRICTED, "standalone"): 1,
        ProxyKind(Nat.UNKNOWN, "unknown"): 1,
        ProxyKind(Nat.UNKNOWN, "iptproxy"): 1,
        ProxyKind(Nat.RESTRICTED, "webext"): 2,
        ProxyKind(Nat.RESTRICTED, "standalone"): 1,
        ProxyKind(Nat.UNKNOWN, "badge"): 1,
    }

    assert debug_page(waiting) == (
        "current snowflakes available: 7\n\tstandalone proxies: 2\n\twebext proxies: 2\n\tbadge proxies: 1\n"
        "\tiptproxy proxies: 1\n\tunknown proxies: 1\nNAT Types available:\n"
        "\trestricted: 3\n\tunrestricted: 1\n\tunknown: 3"
    )


KINDS = st.builds(ProxyKind, st.sampled_from(Nat), st.sampled_from(["webext", "bloco", "unknown"]))


@given(st.dictionaries(KINDS, st.integers(1, 9)))
def test_every_proxy_is_counted_once_by_type_and_once_by_nat(available):
    head, *lines = debug_page(available).split("\n")
    proxies = sum(available.values())

    counts = [(line.strip(), int(line.rpartition(": ")[2])) for line in lines if line.startswith("\t")]
    assert head == f"current snowflakes available: {proxies}"
    assert sum(count for line, count in counts if " proxies: " in line) == proxies
    assert sum(count for line, count in counts if " proxies: " not in line) == proxies


def test_bodies_and_headers_equal_upstreams():
    assert ROBOTS == "User-agent: *\nDisallow: /\n"
    assert NOT_FOUND == "404 page not found\n"
    assert CROSS_ORIGIN == {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Allow-Headers": "Origin, X-Session-ID",
    }
    assert NOT_FOUND_HEADERS == {
        "Content-Type": "text/plain; charset=utf-8",
        "X-Content-Type-Options": "nosniff",
    }
    assert TEXT == "text/plain; charset=utf-8"
    assert PROMETHEUS_TEXT == "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
