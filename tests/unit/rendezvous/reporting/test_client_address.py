"""The address of a request; the expected values were recorded from upstream v2.14.1's GetClientIp."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.rendezvous.reporting.client_address import client_address, keyed_hash

SOCKET = "9.9.9.9"
NOT_PUBLIC = [
    *("10.1.2.3", "172.16.0.1", "192.168.1.1", "127.0.0.1", "0.1.2.3", "169.254.1.1", "192.0.0.1", "192.0.2.1"),
    *("198.51.100.1", "203.0.113.1", "192.88.99.1", "192.18.0.1", "192.19.255.1", "224.0.0.1", "240.0.0.1"),
    *("255.255.255.255", "100.64.0.1", "::1", "100::1", "2001::1", "2001:db8::1", "2001:2::1", "fc00::1"),
    *("fe80::1", "ff02::1", "2002::1", "::ffff:10.0.0.1", "::", "0.0.0.0"),  # noqa: S104 (the unspecified address)
]


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        ("for=1.2.3.4", "1.2.3.4"),
        ("for=192.0.2.60;proto=http; by=203.0.113.43", SOCKET),
        ("for=192.0.2.60, for=5.6.7.8", "5.6.7.8"),
        ('For="[2a00:1450:0:0::17]:4711"', "2a00:1450::17"),
        ('For="[2a00:1450:0:0::17]"', "2a00:1450::17"),
        ('for="1.2.3.4:80"', "1.2.3.4"),
        ("for=1.2.3.4;for=5.6.7.8", "1.2.3.4"),
        ("proto=https;FOR=1.2.3.4", "1.2.3.4"),
        ("for = 1.2.3.4", SOCKET),
        ("for= 1.2.3.4 ;by=a", "1.2.3.4"),
        ("for=a=1.2.3.4", SOCKET),
        ("for=a=b;for=1.2.3.4", "1.2.3.4"),
        ("by=1.2.3.4", SOCKET),
        ('for="1.2.3.4', SOCKET),
        ("for=2a00::1", "2a00::1"),
        ("for", SOCKET),
        ('for="', SOCKET),
    ],
)
def test_the_forwarded_header(forwarded, address):
    assert client_address({"forwarded": forwarded}, socket_address=SOCKET) == address


@pytest.mark.parametrize(
    ("forwarded_for", "address"),
    [
        ("1.2.3.4", "1.2.3.4"),
        ("1.2.3.4, 5.6.7.8", "1.2.3.4"),
        ("198.18.0.1, 1.1.1.1", "198.18.0.1"),
        ("::ffff:1.2.3.4", "1.2.3.4"),
        ("::10.0.0.1", "::a00:1"),
        ("01.2.3.4, 1.1.1.1", "1.1.1.1"),
        ("1.2.3, 1.1.1.1", "1.1.1.1"),
        ("1.2.3.4:80, 1.1.1.1", "1.2.3.4"),
        ("1.2.3.4:, 1.1.1.1", "1.2.3.4"),
        ("1.2.3.4:http, 1.1.1.1", "1.2.3.4"),
        ("[2a00::3]:80, 1.1.1.1", "2a00::3"),
        ("[2a00::3], 1.1.1.1", "2a00::3"),
        ("[1.2.3.4], 1.1.1.1", "1.2.3.4"),
        ("[1.2.3.4]:5, 1.1.1.1", "1.2.3.4"),
        ("[[2a00::3]]:80, 1.1.1.1", "1.1.1.1"),
        ("[[2a00::3]], 1.1.1.1", "1.1.1.1"),
        ("[2a00::3, 1.1.1.1", "1.1.1.1"),
        ("%eth0, 1.1.1.1", "1.1.1.1"),
        ("2A00:0::3, 1.1.1.1", "2a00::3"),
        ("a:b:80, 1.1.1.1", "1.1.1.1"),
        ("", SOCKET),
        (",,  ,", SOCKET),
        ("\u0661.2.3.4, 1.1.1.1", "1.1.1.1"),
        ("2a00:1:2:3:4:5:1.2.3.4", "2a00:1:2:3:4:5:102:304"),
        ("2a00:1:0:0:2:0:0:3", "2a00:1::2:0:0:3"),
        ("2a00:1:0:2:3:4:5:6", "2a00:1:0:2:3:4:5:6"),
        ("64:ff9b::1.2.3.4", "64:ff9b::102:304"),
    ],
)
def test_the_x_forwarded_for_header(forwarded_for, address):
    assert client_address({"x-forwarded-for": forwarded_for}, socket_address=SOCKET) == address


@pytest.mark.parametrize(
    ("socket_address", "address"),
    [
        ("9.9.9.9:1", "9.9.9.9"),
        ("9.9.9.9", "9.9.9.9"),
        ("10.0.0.1", "10.0.0.1"),
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("0.0.0.0", None),  # noqa: S104 (the unspecified address)
        ("@", None),
        ("", None),
    ],
)
def test_the_socket_address_is_used_whether_public_or_not(socket_address, address):
    assert client_address({"x-forwarded-for": "10.0.0.1"}, socket_address=socket_address) == address


def test_forwarded_comes_before_x_forwarded_for():
    headers = {"forwarded": "for=_hidden, for=10.0.0.1", "x-forwarded-for": "10.0.0.1, 5.6.7.8"}

    assert client_address(headers, socket_address=SOCKET) == "5.6.7.8"
    assert client_address(headers | {"forwarded": "for=1.2.3.4"}, socket_address=SOCKET) == "1.2.3.4"


@pytest.mark.parametrize("private", NOT_PUBLIC)
def test_an_address_that_is_not_public_is_skipped(private):
    assert client_address({"x-forwarded-for": f"{private}, 1.1.1.1"}, socket_address=SOCKET) == "1.1.1.1"


@pytest.mark.parametrize("text", ["2a00::3%eth0", "[2a00::3%eth0]:80"])
def test_unlike_upstream_a_zone_is_not_part_of_the_address(text):
    assert client_address({"x-forwarded-for": text}, socket_address=SOCKET) == "2a00::3"


def test_a_zone_within_a_zone_is_not_an_address():
    assert client_address({"x-forwarded-for": "2a00::3%a%b"}, socket_address=SOCKET) == SOCKET


@given(st.text(), st.text(), st.text())
def test_any_header_gives_an_address_or_none(forwarded, forwarded_for, socket_address):
    headers = {"forwarded": forwarded, "x-forwarded-for": forwarded_for}

    address = client_address(headers, socket_address=socket_address)

    assert address is None or str(ip_address(address)) == address


@given(st.ip_addresses(network="2a00::/16") | st.ip_addresses(network="8.0.0.0/8"))
def test_every_form_of_an_address_is_the_same_address(address):
    bare = f"[{address}]" if address.version == 6 else f"{address}"
    forms = [
        {"x-forwarded-for": f"{address}"},
        {"x-forwarded-for": f"{bare}:443"},
        {"forwarded": f'for="{bare}"'},
        {"forwarded": f'by=_us; For="{bare}:443"'},
    ]

    found = {client_address(headers, socket_address=SOCKET) for headers in forms}

    assert found == {str(address)}


def test_the_hash_is_the_first_16_characters_of_hmac_sha256():
    # RFC 4231, test case 2.
    assert keyed_hash("what do ya want for nothing?", key=b"Jefe") == "5bdcc146bf60754e"


def test_another_days_key_gives_another_hash():
    assert keyed_hash("1.2.3.4", key=b"monday") != keyed_hash("1.2.3.4", key=b"tuesday")
