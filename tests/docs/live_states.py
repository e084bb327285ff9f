"""Draw the states of a connection's session from the machine's table: `python -m tests.docs.live_states`."""

from pathlib import Path

from signalbox.live.model.state import SessionState
from signalbox.live.session.machine import OTHERWISE, RULES
from tests.docs.split_states import Row, picture
from tests.docs.split_states import State as Drawn

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "live-states.svg"
# The label of each transition; None is the start and the end. A test compares the keys with the table.
MEANING: dict[tuple[Drawn, Drawn], tuple[str, ...]] = {
    (None, SessionState.OPEN): ("connected",),
    (SessionState.OPEN, SessionState.CHALLENGED): ("HELLO with", "a name"),
    (SessionState.OPEN, SessionState.JOINED): ("anonymous HELLO",),
    (SessionState.OPEN, None): ("no HELLO within 10 s, or no such realm",),
    (SessionState.CHALLENGED, SessionState.JOINED): ("the secret,", "or a token"),
    (SessionState.CHALLENGED, None): ("a wrong secret or token, or none in time",),
    (SessionState.JOINED, SessionState.CLOSING): ("the router's", "GOODBYE"),
    (SessionState.JOINED, None): ("GOODBYE, a violation, or lost",),
    (SessionState.CLOSING, None): ("GOODBYE,", "or 10 s"),
}


def _after(state: SessionState) -> frozenset[Drawn]:
    others = {*(one for rule in RULES[state].values() for one in rule.leads_to), *OTHERWISE[state].leads_to} - {state}
    return frozenset(None if other is SessionState.CLOSED else other for other in others)


TABLE: dict[Drawn, frozenset[Drawn]] = {None: frozenset({SessionState.OPEN})} | {
    state: _after(state) for state in SessionState if state is not SessionState.CLOSED
}
ROW = Row("A session", "phase", TABLE, MEANING, 225, width=104)


def drawn() -> str:
    """Return the SVG picture of the current table."""
    return picture([ROW], title="The states of a session", height=270)


if __name__ == "__main__":
    PICTURE.write_text(drawn())
