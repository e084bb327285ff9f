"""Names of temporary queues: the prefix that IAM policies match, a random part and the original's name."""

import string
from dataclasses import dataclass

from signalbox.queues import FIFO_SUFFIX, MAXIMUM_NAME_LENGTH, QueueName, is_fifo, parse_queue_name

DEFAULT_PREFIX = "mirrord-"
DEFAULT_TEMPLATE = "mirrord-tmp-{{RANDOM}}{{FALLBACK}}{{ORIGINAL}}"
RANDOM, FALLBACK, ORIGINAL = "{{RANDOM}}", "{{FALLBACK}}", "{{ORIGINAL}}"
DEPLOYED_MARK, SESSION_MARK = "-fallback-", "-"
# SQS refuses the name of a deleted queue for a minute, and two splits must never use the same queue.
RANDOM_LENGTH = 12
RANDOM_CHARACTERS = string.ascii_lowercase + string.digits


@dataclass(frozen=True, slots=True)
class QueueNames:
    """Generates the names of a split's temporary queues."""

    prefix: str = DEFAULT_PREFIX
    template: str = DEFAULT_TEMPLATE

    def for_deployed(self, original: QueueName, *, random: str) -> QueueName:
        """Return the name of the deployed consumer's queue that replaces `original`."""
        return self._name(original, random=random, mark=DEPLOYED_MARK)

    def for_session(self, original: QueueName, *, random: str) -> QueueName:
        """Return the name of a session's queue for messages of `original`."""
        return self._name(original, random=random, mark=SESSION_MARK)

    def _name(self, original: QueueName, *, random: str, mark: str) -> QueueName:
        # The original's name is truncated so that the whole has at most 80 characters, including `.fifo`.
        suffix = FIFO_SUFFIX if is_fifo(original) else ""
        frame = self.template.replace(RANDOM, random).replace(FALLBACK, mark)
        room = MAXIMUM_NAME_LENGTH - len(suffix) - len(frame.replace(ORIGINAL, ""))
        stem = frame.replace(ORIGINAL, original.removesuffix(FIFO_SUFFIX)[: max(room, 0)])
        return QueueName(parse_queue_name(stem) + suffix)


def template_problem(template: str, *, prefix: str) -> str | None:
    """Return the problem of a name template, or None."""
    longest = template.replace(RANDOM, "x" * RANDOM_LENGTH).replace(FALLBACK, DEPLOYED_MARK).replace(ORIGINAL, "")
    if not template.startswith(prefix):
        return f"must start with {prefix!r}, which permissions match"
    if RANDOM not in template:
        return f"must contain {RANDOM}, which makes names unique"
    if len(longest) + len(FIFO_SUFFIX) > MAXIMUM_NAME_LENGTH:
        return (
            f"makes names of {len(longest)} characters and more; SQS allows {MAXIMUM_NAME_LENGTH} with {FIFO_SUFFIX!r}"
        )
    if not set(longest) <= set(string.ascii_letters + string.digits + "-_"):
        return "has characters other than letters, digits, '-' and '_'"
    return None
