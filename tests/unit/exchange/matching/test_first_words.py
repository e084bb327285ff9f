"""Known first words, compared with a plain list of all of them."""

from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.matching.graph import FirstWords
from signalbox.exchange.model.patterns import place_of
from tests.unit.exchange.routing.routing_world import places_around

words = st.text("ab\t\n ", max_size=3)


@given(st.sets(words), st.lists(words), st.integers(1, 3))
def test_what_is_known_is_true_and_as_many_reads_as_there_are_words_tell_all(
    existing: set[str], keys: list[str], page: int
) -> None:
    places, known, reads = set(map(place_of, existing)), FirstWords(), 0

    for key in keys:
        if known.exists(key) is None:
            known.add(places_around(place_of(key), places, most=page))
            reads += 1
        for word in {*existing, *keys}:
            assert known.exists(word) in (None, place_of(word) in places)
        assert known.exists(key) is not None

    assert reads <= len(places) + 1
    assert len(known) <= len(places) + 2
