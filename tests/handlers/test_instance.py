"""The deadline of an invocation, after which its failed calls are not repeated."""

from datetime import timedelta

from lambdas.shared import instance


class Context:
    """Lambda's context with ten seconds left."""

    def get_remaining_time_in_millis(self) -> int:
        return 10_000


def test_calls_are_repeated_within_half_of_the_time_that_is_left():
    before = instance.CLOCK.now()
    instance.begin(Context())
    deadline = instance.backoff().deadline()

    assert deadline is not None
    assert before + timedelta(seconds=5) <= deadline <= instance.CLOCK.now() + timedelta(seconds=5)


def test_an_invocation_without_a_context_has_no_deadline():
    instance.begin(Context())

    instance.begin(None)

    assert instance.backoff().deadline() is None
