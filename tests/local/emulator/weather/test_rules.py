"""The table of rules."""

import re
from pathlib import Path

from signalbox.local.emulator.weather.rules import RULES

PAGE = Path(__file__).parents[4] / "docs" / "weather.md"


def test_every_rule_names_a_page_of_aws():
    assert [rule.name for rule in RULES if not rule.source.startswith("https://docs.aws.amazon.com/")] == []
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_the_page_of_the_weather_has_the_table():
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| \[.+?\]\((.+?)\) \|$", PAGE.read_text(), re.MULTILINE)

    assert rows == [(rule.name, rule.effect, rule.figures, rule.source) for rule in RULES]
