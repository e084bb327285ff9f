"""NAT types: their names, and the compatibility of all nine pairs."""

import pytest

from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage
from signalbox.rendezvous.wire.nat import Nat


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
    with pytest.raises(InvalidMessage, match=r"^invalid NAT type$"):
        Nat.parse(text)
