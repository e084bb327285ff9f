"""What a function instance remembers for a second."""

import time

import pytest

from signalbox.aws.live.recent import Moment, Recent
from signalbox.live.rights.settling import RIGHTS_KEPT_SECONDS, RIGHTS_SETTLE_SECONDS
from tests.fakes.recent import TwoClocks


@pytest.mark.parametrize(
    ("monotonic", "system", "is_known"),
    [
        (0.0, 0.0, True),
        (RIGHTS_KEPT_SECONDS - 0.001, RIGHTS_KEPT_SECONDS - 0.001, True),
        (RIGHTS_KEPT_SECONDS, 0.5, False),
        (0.001, 3_600.0, False),  # the instance was frozen, and so was its monotonic clock
        (0.5, -0.1, False),  # the system's time was set back
    ],
)
def test_a_value_is_as_old_as_the_older_of_two_clocks_says(monotonic, system, is_known) -> None:
    clocks = TwoClocks()
    recent: Recent[str, int] = Recent(clocks.now)
    recent.put("a", 1, read_at=clocks.now())

    clocks.monotonic += monotonic
    clocks.system += system

    assert (recent.get("a") == 1) is is_known
    assert recent.get("b") is None


def test_a_caller_may_use_a_value_for_longer() -> None:
    clocks = TwoClocks()
    recent: Recent[str, int] = Recent(clocks.now)
    recent.put("a", 1, read_at=clocks.now())
    clocks.advance(59.9)

    assert (recent.get("a"), recent.get("a", within=60), recent.get("a", within=59)) == (None, 1, None)


def test_the_age_of_a_value_counts_from_the_start_of_its_read() -> None:
    clocks = TwoClocks()
    recent: Recent[str, int] = Recent(clocks.now)
    begun = clocks.now()
    clocks.advance(RIGHTS_KEPT_SECONDS)

    recent.put("a", 1, read_at=begun)

    assert recent.get("a") is None


def test_the_number_of_values_is_limited(monkeypatch) -> None:
    monkeypatch.setattr("signalbox.aws.live.recent.MAXIMUM_VALUES", 1)
    recent: Recent[str, int] = Recent(TwoClocks().now)
    for name in "ab":
        recent.put(name, 1, read_at=recent.now())

    assert (recent.get("a"), recent.get("b")) == (None, 1)


def test_the_clocks_are_those_of_the_system() -> None:
    before = Moment(time.monotonic(), time.time())
    recent: Recent[str, int] = Recent()
    now = recent.now()

    assert before.monotonic <= now.monotonic
    assert before.system <= now.system


def test_a_revocation_settles_after_everything_that_was_read_before_is_out_of_use() -> None:
    assert RIGHTS_SETTLE_SECONDS > RIGHTS_KEPT_SECONDS
