"""What errors add about a mistyped name."""

import pytest

from signalbox.nearest import suggestion


@pytest.mark.parametrize(
    ("name", "known", "text"),
    [
        ("q_radr", ["q_radar", "q_storm"], "; did you mean 'q_radar'?"),
        ("Q_RADAR", ["q_radar"], "; did you mean 'q_radar'?"),
        ("q_radar", ["q_radar", "q_radars"], ""),
        ("nosuch", ["a", "b"], "; there are 'a', 'b'"),
        ("nosuch", ["a"], "; there is 'a'"),
        ("nosuch", [], ""),
        ("nosuch", [f"q_{number}" for number in range(11)], ""),
    ],
)
def test_the_nearest_name_is_offered_or_else_the_few_that_there_are(name, known, text):
    assert suggestion(name, known) == text
