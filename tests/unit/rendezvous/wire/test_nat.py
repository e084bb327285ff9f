"""NAT types: their names, and the compatibility of all nine pairs."""

import pytest

from signalbox.rendezvous.wire.nat import InvalidNat, Nat, compatible_proxies

SERVES = {
    (Nat.UNRESTRICTED, Nat.UNRESTRICTED): True,
    (Nat.UNRESTRICTED, Nat.RESTRICTED): True,
    (Nat.UNRESTRICTED, Nat.UNKNOWN): True,
    (Nat.RESTRICTED, Nat.UNRESTRICTED): True,
    (Nat.RESTRICTED, Nat.RESTRICTED): False,
    (Nat.RESTRICTED, Nat.UNKNOWN): False,
    (Nat.UNKNOWN, Nat.UNRESTRICTED): True,
    (Nat.UNKNOWN, Nat.RESTRICTED): False,
    (Nat.UNKNOWN, Nat.UNKNOWN): False,
}


@pytest.mark.parametrize(
    ("text", "nat"),
    [
        ("", Nat.UNKNOWN),
        ("unknown", Nat.UNKNOWN),
        ("restricted", Nat.RESTRICTED),
        ("unrestricted", Nat.UNRESTRICTED),
    ],
)
def test_each_name_has_its_type_and_the_empty_name_is_unknown(text, nat):
    assert Nat.parse(text) is nat


@pytest.mark.parametrize("text", ["Unknown", " restricted", "open"])
def test_another_name_is_refused(text):
    with pytest.raises(InvalidNat, match=r"^invalid NAT type$"):
        Nat.parse(text)


@pytest.mark.parametrize(("proxy", "client"), SERVES)
def test_a_proxy_serves_a_client_if_one_of_them_is_unrestricted(proxy, client):
    assert (proxy in compatible_proxies(client)) is SERVES[proxy, client]


def test_an_unrestricted_client_prefers_proxies_that_no_other_client_can_use():
    assert compatible_proxies(Nat.UNRESTRICTED) == (Nat.RESTRICTED, Nat.UNKNOWN, Nat.UNRESTRICTED)
