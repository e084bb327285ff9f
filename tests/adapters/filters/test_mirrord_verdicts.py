"""Verdicts of mirrord's own engines: fancy-regex 0.14.0, and jaq-core 2.2.1 by mirrord's rule."""

import json
from pathlib import Path
from typing import Any

import pytest

from signalbox.splitting.model.filters import FilterStopped, FilterUse, InvalidExpression

CASES = Path(__file__).parent / "mirrord"
# A pattern that mirrord's engine gives up, too, is one that we end with its session.
STOPPED = "stopped"


def cases(name: str, key: str) -> list[Any]:
    found = json.loads((CASES / name).read_text())
    return [pytest.param(case, id=f"{number}-{case[key]}"[:60]) for number, case in enumerate(found)]


@pytest.mark.parametrize("steps", [0, 10**9], ids=["sandbox", "here"])
@pytest.mark.parametrize("case", cases("regex.json", "pattern"))
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


@pytest.mark.parametrize("case", cases("jq.json", "program"))
def test_programs_decide_as_in_mirrord(languages, case):
    languages.begin(FilterUse())
    try:
        verdict = languages.program(case["program"]).decision(case["message"]) is True
    except InvalidExpression:
        verdict = None

    assert verdict is case["matches"]
