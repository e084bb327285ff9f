"""The budget of filters: what one session, one message and one call may use."""

from datetime import timedelta

import pytest

from signalbox.messages import Message
from signalbox.splitting.forwarding.filter_budget import FilterBudget
from signalbox.splitting.model.filter_input import FilterInput
from signalbox.splitting.model.filters import FilterStopped, MetadataPattern
from tests.unit.splitting.forwarding.languages import SLOW, PlainLanguages

TOTAL = timedelta(seconds=10)
INPUT = FilterInput.of(
    Message.parse({"Body": "", "MessageAttributes": {"who": {"DataType": "String", "StringValue": "ann"}}}), sns=False
)


class Call:
    """A call whose filters are slow; `ask` returns the seconds that one evaluation was given."""

    def __init__(self, *, is_fifo: bool = False) -> None:
        self.languages, self.stopped = PlainLanguages(), []
        self.budget = FilterBudget.of(self.languages, TOTAL, is_fifo=is_fifo)
        self.budget.on_stopped = lambda session, reason: self.stopped.append((session, reason))

    def ask(self, session: str) -> float:
        before = self.languages.slow_seconds
        pattern = self.languages.pattern(SLOW, case_sensitive=True)
        with pytest.raises(FilterStopped):
            self.budget.verdict(session, MetadataPattern.of("filter", SLOW, pattern), INPUT)
        return self.languages.slow_seconds - before


def test_a_filter_has_a_second_for_a_message_and_a_fifth_of_the_time_for_a_call():
    call = Call()

    assert [call.ask("ann") for _ in range(3)] == pytest.approx([1, 0.9, 0.1])
    assert call.ask("ann") == pytest.approx(0)


def test_filters_of_a_fifo_queue_have_the_same_time_for_each_message_of_a_batch():
    """Else the verdict on a message would depend on the others, and a retry could send it to another queue."""
    call = Call(is_fifo=True)

    assert [call.ask("ann") for _ in range(10)] == pytest.approx([0.2] * 10)
    assert call.ask("bob") == pytest.approx(0.2)


@pytest.mark.parametrize("is_fifo", [False, True])
def test_all_filters_together_never_use_up_the_time(is_fifo):
    call = Call(is_fifo=is_fifo)

    given = [call.ask(str(number % 100)) for number in range(1000)]

    assert sum(given) < TOTAL.total_seconds()
    assert given[-1] < given[0]


def test_a_stopped_session_is_reported_once():
    call = Call()

    for session in ("ann", "bob", "ann"):
        call.ask(session)

    assert call.stopped == [(name, "pattern 'slow' took longer than 1 s") for name in ("ann", "bob")]
    assert call.budget.stopped == {"ann", "bob"}


def test_what_is_compiled_counts_for_its_session_and_the_outer_use_continues_afterwards():
    call = Call()
    before = call.languages.use

    assert call.budget.within("ann", lambda: "compiled") == "compiled"
    with pytest.raises(FilterStopped):
        call.budget.within("ann", lambda: call.languages.pattern(SLOW, case_sensitive=True).matches(""))

    assert call.languages.use is before
    assert call.budget.used == {"ann": pytest.approx(1)}
