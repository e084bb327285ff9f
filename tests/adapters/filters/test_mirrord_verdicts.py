"""Verdicts of mirrord's own engines: fancy-regex 0.14.0, and jaq-core 2.2.1 by mirrord's rule."""

import pytest

from signalbox.splitting.model.filters import FilterStopped, FilterUse, InvalidExpression
from tests.adapters.filters.verdicts import verdicts

# A pattern that mirrord's engine gives up, too, is one that we end with its session.
STOPPED = "stopped"


@pytest.mark.parametrize("steps", [0, 10**9], ids=["sandbox", "here"])
@pytest.mark.parametrize("case", verdicts("regex.json", "pattern"))
def test_patterns_match_what_they_match_in_mirrord(languages, case, steps):
    languages.begin(FilterUse(steps=steps))
    try:
        pattern = languages.pattern(case["pattern"], case_sensitive=not case["ignore_case"])
        verdict = pattern.matches(case["value"])
    except InvalidExpression:
        verdict = None
    except FilterStopped:
        verdict = STOPPED

    assert verdict is case["matches"]


@pytest.mark.parametrize("case", verdicts("jq.json", "program"))
def test_programs_decide_as_in_mirrord(languages, case):
    languages.begin(FilterUse())
    try:
        verdict = languages.program(case["program"]).decision(case["message"]) is True
    except InvalidExpression:
        verdict = None

    assert verdict is case["matches"]
