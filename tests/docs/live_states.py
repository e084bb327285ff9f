"""Draws the states of a connection's session from the machine's table: `python -m tests.docs.live_states`."""

from pathlib import Path

from signalbox.live.session.machine import OTHERWISE, RULES
from signalbox.live.session.state import State
from tests.docs.split_states import Row, picture
from tests.docs.split_states import State as Drawn

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "live-states.svg"
# What each transition means; the end of all is that nothing is heard any more. A test compares them with the table.
MEANING: dict[tuple[Drawn, Drawn], tuple[str, ...]] = {
    (None, State.OPEN): ("connected",),
    (State.OPEN, State.CHALLENGED): ("HELLO with", "a name"),
    (State.OPEN, State.JOINED): ("HELLO, where anybody may join",),
    (State.OPEN, None): ("no HELLO within 10 s, or nothing that can be joined",),
    (State.CHALLENGED, State.JOINED): ("the right", "secret"),
    (State.CHALLENGED, None): ("a wrong secret, or none in time",),
    (State.JOINED, State.CLOSING): ("ended by", "somebody"),
    (State.JOINED, None): ("GOODBYE, a violation, or lost",),
    (State.CLOSING, None): ("GOODBYE,", "or 10 s"),
}


def _after(state: State) -> frozenset[Drawn]:
    others = {*(one for rule in RULES[state].values() for one in rule.leads_to), *OTHERWISE[state].leads_to} - {state}
    return frozenset(None if other is State.CLOSED else other for other in others)


TABLE: dict[Drawn, frozenset[Drawn]] = {None: frozenset({State.OPEN})} | {
    state: _after(state) for state in State if state is not State.CLOSED
}
ROW = Row("A session", "phase", TABLE, MEANING, 225, width=104)


def drawn() -> str:
    """Return the picture of the table as it is."""
    return picture([ROW], title="The states of a session", height=270)


if __name__ == "__main__":
    PICTURE.write_text(drawn())
