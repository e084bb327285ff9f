"""The recipients of a message, for any number of sessions."""

from hypothesis import given
from hypothesis import strategies as st

from signalbox.messages import Message
from signalbox.splitting.forwarding.matching import decide
from signalbox.splitting.model.claims import Claim, FilterOutcome, Mode, SessionId
from signalbox.splitting.model.filter_input import FilterInput
from signalbox.splitting.model.filters import AnyOf, Filter, MetadataPattern, Verdict
from tests.unit.splitting.forwarding.languages import SLOW, PlainLanguages

MESSAGE = Message.parse({"Body": "", "MessageAttributes": {"color": {"DataType": "String", "StringValue": "red"}}})


def says(pattern: str) -> Filter:
    return MetadataPattern.of("filter.metadata", pattern, PlainLanguages().pattern(pattern, case_sensitive=True))


def claim(session: str, pattern: str, mode: Mode = Mode.STEAL) -> Claim:
    return Claim(SessionId(session), mode, says(pattern))


def test_every_session_is_evaluated_on_request():
    claims = [claim("none", "blue"), claim("first", "red"), claim("second", "red")]

    decision = decide(MESSAGE, claims, ask_all=True)

    assert decision.owner == "first"
    assert [verdict.outcome for verdict in decision.verdicts] == [
        FilterOutcome.NO_MATCH,
        FilterOutcome.MATCH,
        FilterOutcome.MATCH,
    ]


def test_a_slow_filter_matches_nothing_and_delays_no_other_session():
    """Operator 3.185.1."""
    decision = decide(MESSAGE, [claim("slow", SLOW), claim("quick", "red")])

    assert decision.owner == "quick"
    assert [(one.session, one.reason) for one in decision.stopped] == [("slow", "pattern 'slow' took longer than 1 s")]


def test_reasons_quote_the_filter_and_never_the_message():
    verdict = AnyOf((says("blue"), says("green"))).verdict(FilterInput.of(MESSAGE, sns=False))

    assert verdict == Verdict(
        matches=False,
        reason="filter.metadata: no attribute matches 'blue'; filter.metadata: no attribute matches 'green'",
    )


@given(st.lists(st.tuples(st.sampled_from(["red", "blue"]), st.sampled_from(Mode))))
def test_decisions_equal_the_naive_definition(sessions):
    claims = [claim(str(number), pattern, mode) for number, (pattern, mode) in enumerate(sessions)]
    matching = [one for one, (pattern, _) in zip(claims, sessions, strict=True) if pattern == "red"]
    stealing = [one.session for one in matching if one.mode is not Mode.MIRROR]

    decision = decide(MESSAGE, claims)

    assert decision.owner == (stealing[0] if stealing else None)
    assert decision.copies == tuple(one.session for one in matching if one.mode is Mode.MIRROR)
    assert decide(MESSAGE, claims, ask_all=True).owner == decision.owner
