"""Names of temporary queues."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.queues import MAXIMUM_NAME_LENGTH, QueueName
from signalbox.splitting.queues.names import (
    DEFAULT_TEMPLATE,
    RANDOM_CHARACTERS,
    RANDOM_LENGTH,
    QueueNames,
    template_problem,
)

names = st.builds(
    lambda stem, suffix: QueueName(stem[: 80 - len(suffix)] + suffix),
    st.text("abcXYZ019-_", min_size=1, max_size=80),
    st.sampled_from(["", ".fifo"]),
)
randoms = st.text(RANDOM_CHARACTERS, min_size=RANDOM_LENGTH, max_size=RANDOM_LENGTH)


def test_names_contain_the_kind_of_queue_and_the_original():
    """MirrordSplitConfig, tmpNameTemplate."""
    queues = QueueNames()

    assert queues.for_deployed(QueueName("memes"), random="abcdefgh1234") == "mirrord-tmp-abcdefgh1234-fallback-memes"
    assert queues.for_session(QueueName("memes.fifo"), random="abcdefgh1234") == "mirrord-tmp-abcdefgh1234-memes.fifo"


@given(names, randoms, randoms)
def test_every_name_is_valid_in_sqs_and_keeps_its_random_part(original, random, other):
    queues = QueueNames()
    made = [queues.for_deployed(original, random=random), queues.for_session(original, random=other)]

    for name, part in zip(made, [random, other], strict=True):
        assert len(name) <= MAXIMUM_NAME_LENGTH
        assert name.startswith("mirrord-")
        assert name.endswith(".fifo") == original.endswith(".fifo")
        assert part in name
    assert made[0] != made[1]


def test_a_custom_template():
    queues = QueueNames("dev-", "dev-{{ORIGINAL}}-{{RANDOM}}")

    assert queues.for_session(QueueName("q" * 80), random="abcdefgh1234") == "dev-" + "q" * 63 + "-abcdefgh1234"


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        (DEFAULT_TEMPLATE, None),
        ("mirrord-{{RANDOM}}", None),
        ("tmp-{{RANDOM}}", "must start with 'mirrord-', which permissions match"),
        ("mirrord-{{ORIGINAL}}", "must contain {{RANDOM}}, which makes names unique"),
        ("mirrord-{{RANDOM}}" + "x" * 60, "makes names of 80 characters and more; SQS allows 80 with '.fifo'"),
        ("mirrord-{{RANDOM}}.{{ORIGINAL}}", "has characters other than letters, digits, '-' and '_'"),
        ("mirrord-{{RANDOM}}{{KEY}}", "has characters other than letters, digits, '-' and '_'"),
    ],
)
def test_a_template_with_invalid_names_is_refused(template, problem):
    assert template_problem(template, prefix="mirrord-") == problem
