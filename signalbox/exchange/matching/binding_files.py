"""Matching of routing keys against bindings from files, without a stage."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.model.bindings import DeclaredName, FileBinding
from signalbox.exchange.model.topics import InvalidRoutingKey, RoutingKey, parse_routing_key


@dataclass(frozen=True, slots=True)
class Match:
    """A routing key and the names of the queues that get a message with it."""

    key: RoutingKey
    queues: tuple[DeclaredName, ...]

    def as_document(self) -> dict[str, object]:
        """Return the match as a JSON object."""
        return {"key": self.key, "queues": list(self.queues)}


def parse_routing_keys(lines: bytes) -> tuple[RoutingKey, ...]:
    """Return the key on each line; an empty line is the empty key. Raises `InvalidRoutingKey` with all problems."""
    keys = []
    problems = []
    for number, line in enumerate(_lines(lines), start=1):
        try:
            keys.append(parse_routing_key(line.decode()))
        except UnicodeDecodeError as error:
            problems.append(f"line {number}: {error}")
        except InvalidRoutingKey as error:
            problems.append(f"line {number}: {error}")
    if problems:
        raise InvalidRoutingKey("\n".join(problems))
    return tuple(keys)


def _lines(text: bytes) -> list[bytes]:
    """Return the text split at line feeds only: every other character may be part of a key."""
    *ended, rest = text.split(b"\n")
    return [*ended, rest] if rest else ended


def matches(keys: Iterable[RoutingKey], bindings: Iterable[FileBinding]) -> Iterator[Match]:
    """Yield for each key the queues with a binding that matches."""
    trie: BindingTrie[DeclaredName] = BindingTrie()
    for binding in bindings:
        trie.add(binding.pattern, binding.queue)
    for key in keys:
        yield Match(key, tuple(sorted(trie.matching(key))))
