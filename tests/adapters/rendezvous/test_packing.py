"""Packed texts: any text comes back, and a rendezvous stays within one write unit."""

from hypothesis import given
from hypothesis import strategies as st

from signalbox.aws.rendezvous.packing import packed, unpacked
from signalbox.clients.rendezvous.simulator import sample_offer
from signalbox.rendezvous.wire.reply import answer_reply


@given(st.text(st.characters()))
def test_every_text_comes_back(text: str) -> None:
    """JSON may contain lone surrogates."""
    assert unpacked(packed(text)) == text


def test_an_offer_and_an_answer_take_a_quarter_of_a_kilobyte() -> None:
    offer = sample_offer("c")

    assert len(offer) > 1000
    assert len(packed(offer)) < 256
    assert len(packed(answer_reply(offer.replace('"offer"', '"answer"')))) < 256
