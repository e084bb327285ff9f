"""Which containers' logs a bridge follows: those that are named, or those to whose logs a session is subscribed."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from signalbox.errors import RejectedError
from signalbox.live.bridge.topics import log_topic
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

ALL, SUBSCRIBED = "all", "subscribed"
_UUID = re.compile("[a-z0-9]{5}-(?:dz642|xvhdp|j7d0g|tpzed)-[a-z0-9]{15}")


@dataclass(frozen=True, slots=True)
class ListedContainer:
    """A container that runs, or has ended a short time ago; `owners` are those of its requests."""

    uuid: str
    request: str
    owners: tuple[str, ...]
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class ContainerSelection:
    """The names in `--logs`: `all`, `subscribed`, or UUIDs of containers, requests, projects and users."""

    names: frozenset[str]

    @classmethod
    def parse(cls, names: Iterable[str]) -> "ContainerSelection":
        """Return the selection of names. Raises `RejectedError`."""
        wrong = [name for name in names if name not in (ALL, SUBSCRIBED) and _UUID.fullmatch(name) is None]
        if wrong:
            raise RejectedError(
                f"--logs: expected `{SUBSCRIBED}`, `{ALL}`, or the UUID of a container, a container request, a project "
                f"or a user, not {wrong[0][:80]!r}"
            )
        return cls(frozenset(names))

    def selects(self, container: ListedContainer, patterns: Iterable[TopicPattern]) -> bool:
        """Return whether a container's log is followed, given the patterns of the realm's subscriptions."""
        if self.names & {ALL, container.uuid, container.request, *container.owners}:
            return True
        prefixes = [log_topic(owner, container.uuid, "") for owner in container.owners]
        wanted = patterns if SUBSCRIBED in self.names else ()
        return any(_may_match(pattern, prefix) for pattern in wanted for prefix in prefixes)


def _may_match(pattern: TopicPattern, prefix: str) -> bool:
    """Return whether a pattern matches a topic that begins with a prefix and has one more word."""
    if pattern.match is MatchPolicy.WILDCARD:
        words, known = pattern.uri.split("."), prefix.split(".")
        return len(words) == len(known) and all(
            one in ("", other) for one, other in zip(words[:-1], known[:-1], strict=True)
        )
    is_above = pattern.match is MatchPolicy.PREFIX and prefix.startswith(pattern.uri)
    return is_above or pattern.uri.startswith(prefix)
