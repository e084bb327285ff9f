"""The network of a client's address."""

from datetime import date

import pytest

from signalbox.networks import network_number, stored_group


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("8.8.8.8", "::ffff:8.8.8.8"),
        ("2a00:1450:4001:81b::1", "2a00:1450:4001:ffff:ffff::2"),
        ("2002:808:808::1", "2002:808:808:ffff::2"),
    ],
)
def test_addresses_of_one_customer_are_one_network(one: str, other: str) -> None:
    assert network_number(one) == network_number(other)


@pytest.mark.parametrize(("one", "other"), [("8.8.8.8", "8.8.8.9"), ("2a00:1450:4001:81b::1", "2a00:1450:4002:81b::1")])
def test_other_addresses_are_other_networks(one: str, other: str) -> None:
    assert network_number(one) != network_number(other)


def test_a_stored_group_names_no_network():
    """An unkeyed CRC of 32 bits has one inverse among the addresses of IPv4."""
    today, tomorrow = date(2026, 11, 27), date(2026, 11, 28)
    groups = {stored_group(number, today) for number in range(10_000)}

    assert groups == set(range(256))
    assert stored_group(7, today) == stored_group(7, today) != stored_group(7, tomorrow)
    assert stored_group(None, today) is None


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_loopback_has_no_network(address: str) -> None:
    assert network_number(address) is None


@pytest.mark.parametrize("address", ["2002:808:808::1", "2001:0:808:808::1", "10.1.2.3", "fe80::1", "", "nonsense"])
def test_all_that_a_stage_in_aws_may_see_has_a_network(address: str) -> None:
    """Limits by address hold for it; Python 3.13 takes 6to4 and Teredo for private."""
    assert network_number(address) is not None
