"""Names of temporary queues: the prefix that permissions rely on, a random part, and what they stand in for."""

import string
from dataclasses import dataclass

from signalbox.queues import FIFO_SUFFIX, MAXIMUM_NAME_LENGTH, QueueName, is_fifo, parse_queue_name

DEFAULT_PREFIX = "mirrord-"
DEFAULT_TEMPLATE = "mirrord-tmp-{{RANDOM}}{{FALLBACK}}{{ORIGINAL}}"
RANDOM, FALLBACK, ORIGINAL = "{{RANDOM}}", "{{FALLBACK}}", "{{ORIGINAL}}"
DEPLOYED_MARK, SESSION_MARK = "-fallback-", "-"
# A deleted queue's name cannot be used again for a minute, and two splits must never meet in one queue.
RANDOM_LENGTH = 12
RANDOM_CHARACTERS = string.ascii_lowercase + string.digits


@dataclass(frozen=True, slots=True)
class QueueNames:
    """Names the temporary queues of a split."""

    prefix: str = DEFAULT_PREFIX
    template: str = DEFAULT_TEMPLATE

    def for_deployed(self, original: QueueName, *, random: str) -> QueueName:
        """Return the name of the queue that the deployed consumer reads instead of `original`."""
        return self._name(original, random=random, mark=DEPLOYED_MARK)

    def for_session(self, original: QueueName, *, random: str) -> QueueName:
        """Return the name of a queue for what a session gets of `original`."""
        return self._name(original, random=random, mark=SESSION_MARK)

    def _name(self, original: QueueName, *, random: str, mark: str) -> QueueName:
        # The original's name is what gives way: at 80 characters, and `.fifo` counts among them.
        suffix = FIFO_SUFFIX if is_fifo(original) else ""
        frame = self.template.replace(RANDOM, random).replace(FALLBACK, mark)
        room = MAXIMUM_NAME_LENGTH - len(suffix) - len(frame.replace(ORIGINAL, ""))
        stem = frame.replace(ORIGINAL, original.removesuffix(FIFO_SUFFIX)[: max(room, 0)])
        return QueueName(parse_queue_name(stem) + suffix)


def template_problem(template: str, *, prefix: str) -> str | None:
    """Return what is wrong with a template for names, or None."""
    longest = template.replace(RANDOM, "x" * RANDOM_LENGTH).replace(FALLBACK, DEPLOYED_MARK).replace(ORIGINAL, "")
    if not template.startswith(prefix):
        return f"must start with {prefix!r}, by which permissions know temporary queues"
    if RANDOM not in template:
        return f"must hold {RANDOM}, by which names differ"
    if len(longest) + len(FIFO_SUFFIX) > MAXIMUM_NAME_LENGTH:
        return (
            f"makes names of {len(longest)} characters and more; SQS allows {MAXIMUM_NAME_LENGTH} with {FIFO_SUFFIX!r}"
        )
    if not set(longest) <= set(string.ascii_letters + string.digits + "-_"):
        return "has characters other than letters, digits, '-' and '_'"
    return None
