"""Draw the states of a rendezvous from the broker's table: `python -m tests.docs.states` writes the picture."""

from pathlib import Path

from signalbox.rendezvous.model.states import TRANSITIONS, OfferState
from tests.docs.split_states import Row, picture
from tests.docs.split_states import State as Drawn

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "states.svg"
# The label of each transition; None is the start. A test compares the keys with the table.
MEANING: dict[tuple[Drawn, Drawn], tuple[str, ...]] = {
    (None, OfferState.PENDING): ("parked",),
    (None, OfferState.REFUSED): ("refused",),
    (OfferState.PENDING, OfferState.MATCHED): ("a proxy", "claims it"),
    (OfferState.PENDING, OfferState.EXPIRED): ("patience ends",),
    (OfferState.MATCHED, OfferState.MATCHED): ("silent: another proxy claims it",),
    (OfferState.MATCHED, OfferState.ANSWERED): ("the proxy answers",),
    (OfferState.MATCHED, OfferState.EXPIRED): ("patience", "ends"),
}
# In an order in which no arrow passes more than one box.
ORDER = (OfferState.REFUSED, OfferState.PENDING, OfferState.MATCHED, OfferState.EXPIRED, OfferState.ANSWERED)
TABLE: dict[Drawn, frozenset[Drawn]] = {state: frozenset(TRANSITIONS[state]) for state in (None, *ORDER)}
ROW = Row("A rendezvous", "stage", TABLE, MEANING, 150, width=100)


def drawn() -> str:
    """Return the picture of the current table."""
    return picture([ROW], title="The states of a rendezvous", height=230)


if __name__ == "__main__":
    PICTURE.write_text(drawn())
